//! Load by wrk, which costs less than any client of ours, so that the figures are the service's.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, bail, ensure};
use tokio::process::Command;

use super::request::Request;

const SCRIPT: &str = include_str!("load.lua");
/// An answer that takes longer is an error.
const TIMEOUT: &str = "20s";
/// No more threads than this; each has its share of the connections.
const THREADS_MAX: usize = 2;

/// What wrk, or several of them at once, measured.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Told {
    pub(super) requests: u64,
    pub(super) per_second: f64,
    pub(super) errors: u64,
    /// Latencies in microseconds, shortest first, each with how many requests it stands for.
    latencies: Vec<(u64, f64)>,
}

/// Asks these servers, each of which gets its share of the connections and a wrk of its own.
pub(super) async fn run(
    servers: &[String],
    connections: usize,
    seconds: u64,
    headers: &[(&str, String)],
    requests: &[Request],
) -> anyhow::Result<Told> {
    let directory = tempfile::Builder::new()
        .prefix("placement-wrk-")
        .tempdir()?;
    let script = directory.path().join("load.lua");
    std::fs::write(&script, SCRIPT)?;
    let file = directory.path().join("requests");
    std::fs::write(&file, lines(requests))?;
    let asked = servers.iter().enumerate().map(|(nth, server)| {
        let share = connections / servers.len() + usize::from(nth < connections % servers.len());
        (server, share)
    });
    let asked = asked.filter(|(_, share)| *share > 0);
    let processes = asked.map(|(server, share)| {
        let mut command = Command::new("wrk");
        // With one server one thread more may take what the service needs.
        let threads = match servers.len() {
            1 => share.min(THREADS_MAX),
            _ => 1,
        };
        command
            .args(["--timeout", TIMEOUT])
            .arg(format!("-t{threads}"))
            .arg(format!("-c{share}"))
            .arg(format!("-d{seconds}s"));
        for (name, value) in headers {
            command.arg("-H").arg(format!("{name}: {value}"));
        }
        command.arg("-s").arg(&script).arg(server).arg("--");
        command
            .arg(rand::random::<u32>().to_string())
            .arg(path(&file));
        command
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn();
        async move {
            let child =
                child.context("wrk does not start; it is in the Debian package of its name")?;
            let output = child.wait_with_output().await?;
            let said = String::from_utf8_lossy(&output.stdout);
            ensure!(
                output.status.success(),
                "wrk failed: {said}{}",
                String::from_utf8_lossy(&output.stderr)
            );
            Told::read(&said)
        }
    });
    let told = futures::future::try_join_all(processes.collect::<Vec<_>>()).await?;
    let told = Told::sum(told).context("nothing was asked")?;
    ensure!(
        told.errors == 0,
        "{} of {} requests failed: this run says nothing",
        told.errors,
        told.requests
    );
    Ok(told)
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

fn lines(requests: &[Request]) -> String {
    let line = |request: &Request| {
        let Request { method, path, body } = request;
        format!("{method}\t{path}\t{body}\n")
    };
    requests.iter().map(line).collect()
}

impl Told {
    fn read(said: &str) -> anyhow::Result<Self> {
        let (_, ours) = said
            .split_once("\nmeasured ")
            .with_context(|| format!("wrk told no figures:\n{said}"))?;
        let mut lines = ours.lines();
        let head = lines.next().unwrap_or_default();
        let numbers: Vec<u64> = head
            .split(' ')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .with_context(|| format!("wrk measured `{head}`"))?;
        let [requests, microseconds, errors] = numbers[..] else {
            bail!("wrk measured `{head}`");
        };
        let mut latencies = Vec::new();
        for line in lines {
            let told = line.split_once(' ');
            let told = told.and_then(|(at, took)| Some((at.parse().ok()?, took.parse().ok()?)));
            let (at, took): (f64, u64) = told.with_context(|| format!("wrk told `{line}`"))?;
            let share = if at < 99.0 { 0.01 } else { 0.0001 };
            latencies.push((took, share * requests as f64));
        }
        ensure!(requests > 0, "wrk got no answer at all:\n{said}");
        Ok(Self {
            requests,
            per_second: requests as f64 * 1e6 / microseconds as f64,
            errors,
            latencies,
        })
    }

    fn sum(all: Vec<Self>) -> Option<Self> {
        let mut sum = all.into_iter().reduce(|mut sum, one| {
            sum.requests += one.requests;
            sum.per_second += one.per_second;
            sum.errors += one.errors;
            sum.latencies.extend(one.latencies);
            sum
        })?;
        sum.latencies.sort_by_key(|(took, _)| *took);
        Some(sum)
    }

    /// The latency in milliseconds that this share (0 to 1) of the requests did not exceed.
    pub(super) fn quantile_ms(&self, share: f64) -> f64 {
        let all: f64 = self.latencies.iter().map(|(_, weight)| weight).sum();
        let mut passed = 0.0;
        let found = self.latencies.iter().find(|(_, weight)| {
            passed += weight;
            passed >= share * all
        });
        let found = found.or(self.latencies.last());
        found.map_or(0.0, |(took, _)| *took as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the script prints for latencies that rise evenly to so many microseconds.
    fn printed(requests: u64, longest: f64) -> String {
        let mut text = format!("Running 1s test\n\nmeasured {requests} 2000000 0\n");
        let steps = (0..99).map(|percent| f64::from(percent) + 0.5);
        for at in steps.chain((0..100).map(|part| 99.0 + (f64::from(part) + 0.5) / 100.0)) {
            text += &format!("{at} {:.0}\n", at / 100.0 * longest);
        }
        text
    }

    #[test]
    fn several_wrks_are_one() {
        let fast = Told::read(&printed(3000, 1000.0)).expect("figures");
        assert_eq!((fast.requests, fast.per_second), (3000, 1500.0));
        assert!((fast.quantile_ms(0.5) - 0.5).abs() < 0.02);
        assert!((fast.quantile_ms(0.999) - 0.999).abs() < 0.002);
        let slow = Told::read(&printed(1000, 9000.0)).expect("figures");
        let both = Told::sum(vec![slow, fast]).expect("two");
        assert_eq!((both.requests, both.per_second), (4000, 2000.0));
        // 750 of 1,000 are among the fast ones, of the slow ones a ninth is as fast as those.
        assert!((both.quantile_ms(0.75) - 0.965).abs() < 0.05);
        assert!((both.quantile_ms(0.999) - 8.96).abs() < 0.05);
    }

    #[test]
    fn what_is_no_figure_is_an_error() {
        assert!(Told::read("unable to connect").is_err());
        assert!(Told::read("\nmeasured 1 2\n").is_err());
        assert!(Told::read("\nmeasured 0 2 0\n").is_err());
    }
}
