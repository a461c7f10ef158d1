//! What TLS and Keystone cost, each beside the same without it, in one run.

use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use placement_client::{Client, Consistency};
use placement_tests::cluster::{COUNTED_ONLY, Cluster};
use placement_tests::keystone::{Keystone, Who};
use placement_tests::process_cost::cpu_time;
use uuid::Uuid;

use super::{PROVIDERS, estates, machine, ms, progress, work};

const PASSWORD: &str = "placement";
const PLACEMENT: Who<'_> = Who {
    user: "placement",
    password: PASSWORD,
    project: Some("service"),
};

/// Reads on one node over TLS and with tokens that a real Keystone has vouched for before, and writes on three nodes
/// that know each other by certificates, beside the same without either. Connections are kept open.
#[derive(Args)]
pub(super) struct Options {
    /// Seconds per figure and round.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,

    /// How often each is measured, in turn; the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,

    /// How many clients ask at once.
    #[arg(long, default_value_t = 16)]
    clients: usize,
}

/// A cluster that is measured.
struct Subject {
    name: &'static str,
    cluster: Cluster,
    clients: Vec<Client>,
    providers: Vec<Uuid>,
    rounds: Vec<Figure>,
}

#[derive(Clone, Copy)]
struct Figure {
    per_second: f64,
    p50: Duration,
    cpu_per_request: Duration,
}

impl Subject {
    async fn of(name: &'static str, cluster: Cluster, token: Option<&str>) -> anyhow::Result<Self> {
        let known = |client: Client| match token {
            Some(token) => client.with_token(token),
            None => client,
        };
        let providers = estates::boundless(&known(cluster.client()), PROVIDERS).await?;
        Ok(Self {
            name,
            clients: cluster.clients().into_iter().map(known).collect(),
            cluster,
            providers,
            rounds: Vec::new(),
        })
    }

    fn cpu(&mut self) -> anyhow::Result<Duration> {
        (self.cluster.ids().into_iter())
            .map(|id| cpu_time(self.cluster.process(id).pid()))
            .sum()
    }

    async fn measure(&mut self, options: &Options, writes: bool) -> anyhow::Result<()> {
        progress(self.name);
        let duration = Duration::try_from_secs_f64(options.seconds).context("--seconds")?;
        let before = self.cpu()?;
        let (clients, providers, count) = (&self.clients, &self.providers, options.clients);
        let measured = if writes {
            work::writes(clients, providers, count, duration).await
        } else {
            let local: Vec<_> = (clients.iter().cloned())
                .map(|client| client.with_consistency(Consistency::Local))
                .collect();
            work::reads(&local, providers, count, duration).await
        };
        ensure!(
            measured.errors == 0,
            "{}: {} failed",
            self.name,
            measured.errors
        );
        let spent = self.cpu()?.saturating_sub(before);
        // The warming up before is not among the latencies, and costs as much per request.
        let all = measured.per_second() * (measured.elapsed + work::WARM_UP).as_secs_f64();
        self.rounds.push(Figure {
            per_second: measured.per_second(),
            p50: measured.quantile(0.5),
            cpu_per_request: spent.div_f64(all.max(1.0)),
        });
        Ok(())
    }

    fn median(&self) -> Figure {
        let mut rounds = self.rounds.clone();
        rounds.sort_by_key(|round| round.cpu_per_request);
        rounds[rounds.len() / 2]
    }
}

pub(super) async fn run(options: &Options) -> anyhow::Result<()> {
    ensure!(options.rounds > 0, "--rounds is 1 or more");
    println!("{}", machine());
    let directory = std::env::current_exe().context("where am I")?;
    let directory = directory.parent().context("where am I")?;
    progress("starting Keystone");
    let keystone = Keystone::start(directory).await?;
    keystone
        .people("service", &[(PLACEMENT, "service")])
        .await?;
    let token = keystone.token(PLACEMENT).await?;
    let quiet = format!("[log]\nlevel = \"warn\"\n{COUNTED_ONLY}");
    let asking = format!(
        "{quiet}[auth]\nstrategy = \"keystone\"\n[keystone]\nauth_url = \"{}\"\nusername = \"placement\"\n\
         password = \"{PASSWORD}\"\n",
        keystone.url()
    );

    let mut reads = Vec::new();
    for (name, is_secured, config, token) in [
        ("plain, noauth2", false, &quiet, None),
        ("plain, Keystone", false, &asking, Some(&*token)),
        ("TLS, noauth2", true, &quiet, None),
        ("TLS, Keystone", true, &asking, Some(&*token)),
    ] {
        reads.push(Subject::of(name, cluster(1, is_secured, config).await?, token).await?);
    }
    println!(
        "\n## One node: GET /resource_providers/{{uuid}}/inventories, local, {} clients\n",
        options.clients
    );
    table(&mut reads, options, false).await?;
    drop(reads);

    let mut writes = Vec::new();
    for (name, is_secured) in [("plain", false), ("TLS on each door", true)] {
        writes.push(Subject::of(name, cluster(3, is_secured, &quiet).await?, None).await?);
    }
    println!(
        "\n## Three nodes: PUT /allocations through all of them, {} clients\n",
        options.clients
    );
    table(&mut writes, options, true).await
}

async fn cluster(nodes: u64, is_secured: bool, config: &str) -> anyhow::Result<Cluster> {
    match is_secured {
        true => Cluster::start_secured(nodes, config).await,
        false => Cluster::start_with(nodes, config).await,
    }
}

async fn table(subjects: &mut [Subject], options: &Options, writes: bool) -> anyhow::Result<()> {
    for _ in 0..options.rounds {
        for subject in subjects.iter_mut() {
            subject.measure(options, writes).await?;
        }
    }
    println!("| | requests/s | p50 | processor time of the nodes per request | beside the first |");
    println!("|---|---:|---:|---:|---:|");
    let first = subjects[0].median().cpu_per_request.as_secs_f64();
    for subject in subjects.iter() {
        let figure = subject.median();
        let cpu = figure.cpu_per_request.as_secs_f64();
        println!(
            "| {} | {:.0} | {} | {:.1} µs | {:.2} × |",
            subject.name,
            figure.per_second,
            ms(figure.p50),
            cpu * 1e6,
            cpu / first
        );
    }
    Ok(())
}
