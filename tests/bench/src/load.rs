//! HTTP load by wrk. It costs less than a client in Rust, so that the service limits the figures.

use std::process::Stdio;

use anyhow::{Context, ensure};
use placement_client::{CandidateQuery, MICROVERSION_DEFAULT};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use uuid::Uuid;

use crate::cores::{self, Shares, Ticks};
use crate::process_group::{cpu_time_of, cpu_time_of_ended_children};

const SCRIPT: &str = include_str!("load.lua");
/// A request that takes longer counts as an error.
const TIMEOUT: &str = "60s";
pub(crate) const WARM_UP_S: u64 = 1;
/// Resources of a small claim.
const SMALL: [(&str, u64); 3] = [("VCPU", 1), ("MEMORY_MB", 64), ("DISK_GB", 1)];
/// Number of providers or consumers that are requested in turn.
pub(crate) const IN_TURN: u128 = 1000;

/// Method, path and body of a request. An `@` in the path, or 36 of them in the body, are replaced
/// by a new UUID each time.
pub(crate) type Request = (&'static str, String, String);

/// Which nodes get the load.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Asking {
    All,
    Leader,
    Follower,
}

/// Load on some servers: the requests and the number of connections.
#[derive(Clone)]
pub(crate) struct Load {
    /// URLs such as `http://127.0.0.1:8778`. Connections are spread evenly over them.
    pub(crate) servers: Vec<String>,
    /// Requests that each connection sends in turn.
    pub(crate) requests: Vec<Request>,
    pub(crate) connections: usize,
    pub(crate) seconds: u64,
    pub(crate) token: String,
    /// Headers added to each request.
    pub(crate) headers: Vec<String>,
    /// Pause of a connection after each answer, in milliseconds.
    pub(crate) pause_ms: u32,
    /// Whether failed requests are tolerated; they are not counted.
    pub(crate) may_fail: bool,
}

/// Result of a load.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sample {
    pub(crate) requests: f64,
    pub(crate) errors: u64,
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Processor time per request: of the whole service, of the node that gets the requests, and of
    /// the load.
    pub(crate) cpu_ms: f64,
    pub(crate) cpu_of_asked_ms: f64,
    pub(crate) cpu_of_load_ms: f64,
    pub(crate) shares: Shares,
}

/// Runs a load and adds the processor time of the asked processes, of the service's other
/// processes, and of the load.
pub(crate) async fn measured(
    [asked, others]: [&[u32]; 2],
    run: impl Future<Output = anyhow::Result<Sample>>,
) -> anyhow::Result<Sample> {
    let spent = || {
        let of_load = cpu_time_of_ended_children()?;
        anyhow::Ok([cpu_time_of(asked)?, cpu_time_of(others)?, of_load])
    };
    let (before, ticks) = (spent()?, Ticks::now()?);
    let mut sample = run.await?;
    sample.shares = ticks.until_now()?;
    let after = spent()?;
    let each = |nth: usize| (after[nth] - before[nth]).as_secs_f64() * 1e3 / sample.requests;
    let [of_asked, of_others, of_load] = [each(0), each(1), each(2)];
    sample.cpu_ms = of_asked + of_others;
    sample.cpu_of_asked_ms = of_asked;
    sample.cpu_of_load_ms = of_load;
    Ok(sample)
}

impl Load {
    pub(crate) fn on(servers: &[String], requests: Vec<Request>, connections: usize) -> Self {
        Self {
            servers: servers.to_vec(),
            requests,
            connections,
            seconds: 3,
            token: "admin".to_owned(),
            headers: Vec::new(),
            pause_ms: 0,
            may_fail: false,
        }
    }

    pub(crate) fn seconds(self, seconds: u64) -> Self {
        Self { seconds, ..self }
    }

    pub(crate) fn header(mut self, header: &str) -> Self {
        self.headers.push(header.to_owned());
        self
    }

    /// Runs the load once to warm up and once measured.
    pub(crate) async fn measure(&self, asked: &[u32], others: &[u32]) -> anyhow::Result<Sample> {
        self.clone().seconds(WARM_UP_S).run().await?;
        measured([asked, others], self.run()).await
    }

    /// Runs the load once.
    pub(crate) async fn run(&self) -> anyhow::Result<Sample> {
        let mut sample = figures(&self.printed().await?)?;
        if self.may_fail {
            let failed = std::mem::take(&mut sample.errors) as f64;
            ensure!(failed < sample.requests, "no request was granted");
            sample.per_second *= 1.0 - failed / sample.requests;
            sample.requests -= failed;
        }
        ensure!(
            sample.errors == 0,
            "{} of {} requests failed: {:?}",
            sample.errors,
            sample.requests,
            self.requests[0]
        );
        Ok(sample)
    }

    /// Opens endless responses and reads them.
    pub(crate) async fn stream(&self) -> anyhow::Result<()> {
        let printed = self.printed().await?;
        let counted = printed
            .lines()
            .find(|line| line.starts_with("measured "))
            .context("wrk measured nothing")?;
        let went_on = counted.starts_with("measured 0 ") && counted.ends_with(" 0");
        ensure!(went_on, "endless answers ended: {counted}");
        Ok(())
    }

    /// Output of one wrk per server.
    async fn printed(&self) -> anyhow::Result<String> {
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join("load.lua"), SCRIPT)?;
        let line = |(method, path, body): &Request| format!("{method}\t{path}\t{body}\n");
        let requests: String = self.requests.iter().map(line).collect();
        std::fs::write(directory.path().join("requests"), requests)?;
        let shared = shared(&self.servers, self.connections);
        let processes = shared.map(|(server, share)| self.wrk(&directory, server, share));
        Ok(futures::future::try_join_all(processes).await?.concat())
    }
    async fn wrk(&self, directory: &TempDir, server: &str, share: usize) -> anyhow::Result<String> {
        let mut command = on_its_core("wrk")?;
        command
            .args(["--timeout", TIMEOUT, "-s", "load.lua", "-t1"])
            .arg(format!("-c{share}"))
            .arg(format!("-d{}s", self.seconds))
            .args(["-H", &format!("X-Auth-Token: {}", self.token)])
            .args([
                "-H",
                &format!("OpenStack-API-Version: placement {MICROVERSION_DEFAULT}"),
            ])
            .args(["-H", "Content-Type: application/json"]);
        for header in &self.headers {
            command.args(["-H", header]);
        }
        command
            .args([server, "--", &rand::random::<u32>().to_string(), "requests"])
            .env("PAUSE_MS", self.pause_ms.to_string())
            .current_dir(directory.path());
        let output = command.output().await.context("taskset does not start")?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let failed = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "wrk failed: {printed}{failed}");
        Ok(printed)
    }
}

/// Spreads the connections over the servers: pairs of a server and its number of connections.
pub(crate) fn shared<T>(servers: &[T], connections: usize) -> impl Iterator<Item = (&T, usize)> {
    let count = servers.len();
    let share = move |nth| connections / count + usize::from(nth < connections % count);
    let shares = servers.iter().zip((0..count).map(share));
    shares.filter(|(_, share)| *share > 0)
}

/// A command that runs on the load's processor.
pub(crate) fn on_its_core(program: &str) -> anyhow::Result<Command> {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &cores::of_the_load()?, program]);
    command.stdin(Stdio::null()).kill_on_drop(true);
    Ok(command)
}

/// Figures of several concurrent wrks, from their combined output.
fn figures(printed: &str) -> anyhow::Result<Sample> {
    let mut sample = Sample::default();
    let mut latencies = Vec::new();
    for line in printed.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["measured", requests, microseconds, errors] => {
                let requests: f64 = requests.parse()?;
                sample.requests += requests;
                sample.per_second += requests * 1e6 / microseconds.parse::<f64>()?;
                sample.errors += errors.parse::<u64>()?;
            }
            ["latency", microseconds, weight] => {
                latencies.push((microseconds.parse::<u64>()?, weight.parse::<f64>()?));
            }
            _ => {}
        }
    }
    ensure!(sample.requests > 0.0, "wrk got no answer");
    latencies.sort_by_key(|(took, _)| *took);
    let all: f64 = latencies.iter().map(|(_, weight)| weight).sum();
    let quantile = |share: f64| {
        let mut passed = 0.0;
        let found = latencies.iter().find(|(_, weight)| {
            passed += weight;
            passed >= share * all
        });
        found
            .or(latencies.last())
            .map_or(0.0, |(took, _)| *took as f64 / 1e3)
    };
    (sample.p50_ms, sample.p99_ms) = (quantile(0.5), quantile(0.99));
    Ok(sample)
}

/// Reads of the inventories of these providers.
pub(crate) fn reads(providers: &[Uuid]) -> Vec<Request> {
    gets(providers, |uuid| {
        format!("/resource_providers/{uuid}/inventories")
    })
}

/// One GET per UUID.
pub(crate) fn gets(uuids: &[Uuid], path: impl Fn(&Uuid) -> String) -> Vec<Request> {
    uuids
        .iter()
        .map(|uuid| ("GET", path(uuid), String::new()))
        .collect()
}

/// Writes of allocations for new consumers, from the providers of [`super::clouds::boundless`].
pub(crate) fn writes() -> Vec<Request> {
    let write = |provider| {
        let provider = Uuid::from_u128(provider).to_string();
        claim(&provider, json!({"VCPU": 1, "MEMORY_MB": 2}))
    };
    (1..=IN_TURN).map(write).collect()
}

/// Claims in one request each, of the same size as in [`claims`].
pub(crate) fn one_claims() -> Vec<Request> {
    let (path, query) = (
        CandidateQuery::resources(&SMALL).path(),
        "allocation_candidates?",
    );
    let query = path.split_once(query).map_or("", |(_, query)| query);
    let body = json!({
        "consumers": {"@".repeat(36): {
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": null,
            "consumer_type": "INSTANCE",
        }},
        "want": {"query": query, "order": "any"},
    });
    vec![("POST", "/placementd/v1/claims".to_owned(), body.to_string())]
}

/// Claims as a scheduler makes them: a search, then an allocation from one of its candidates. They
/// are small, so that a cloud does not fill up soon.
pub(crate) fn claims(limit: u64) -> Vec<Request> {
    let search = CandidateQuery::resources(&SMALL).limit(limit);
    let resources = SMALL.map(|(class, amount)| (class.to_owned(), json!(amount)));
    vec![
        ("GET", search.path(), String::new()),
        claim(
            &"#".repeat(36),
            Value::Object(resources.into_iter().collect()),
        ),
    ]
}

fn claim(provider: &str, resources: Value) -> Request {
    let body = json!({
        "allocations": {provider: {"resources": resources}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": null,
        "consumer_type": "INSTANCE",
    });
    ("PUT", "/allocations/@".to_owned(), body.to_string())
}
