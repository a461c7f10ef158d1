//! Cost of TLS and of Keystone, each compared with the same load without it, in one run.

use anyhow::{Context, ensure};
use clap::Args;
use placement_client::Client;
use placement_tests::cluster::Cluster;
use placement_tests::keystone::{Keystone, TokenRequest};

use crate::clouds::boundless;
use crate::load::{Load, Sample, reads, writes};
use crate::{ms, pids, progress, urls};

const PASSWORD: &str = "placement";
const PLACEMENT: TokenRequest<'_> = TokenRequest {
    user: "placement",
    password: PASSWORD,
    project: Some("service"),
};

/// Measures what TLS and Keystone cost, compared with the same load without them: reads on one node
/// over TLS and with tokens that a real Keystone has already validated, and writes on three nodes
/// that authenticate each other by certificates. Connections are kept open.
#[derive(Args)]
pub(crate) struct Options {
    /// Duration of each measurement in a round, in seconds.
    #[arg(long, default_value_t = 3)]
    seconds: u64,

    /// Number of rounds, in each of which the clusters take turns; the median is printed.
    #[arg(long, default_value_t = 3)]
    rounds: usize,

    /// Number of concurrent clients.
    #[arg(long, default_value_t = 16)]
    clients: usize,
}

/// A cluster under measurement.
struct Subject {
    name: &'static str,
    load: Load,
    cluster: Cluster,
    rounds: Vec<Sample>,
}

impl Options {
    /// Reads of one node, or writes of three.
    async fn subject(
        &self,
        name: &'static str,
        nodes: u64,
        is_secured: bool,
        config: &str,
        token: &str,
    ) -> anyhow::Result<Subject> {
        progress(&format!("starting {nodes} nodes: {name}"));
        let cluster = if is_secured {
            Cluster::start_secured(nodes, config).await?
        } else {
            Cluster::start_with(nodes, config).await?
        };
        let client: Client = cluster.client().with_token(token);
        let providers = boundless(&client).await?;
        let servers = urls(&cluster, cluster.ids());
        let requests = if nodes == 1 {
            reads(&providers)
        } else {
            writes()
        };
        let mut load = Load::on(&servers, requests, self.clients).seconds(self.seconds);
        if nodes == 1 {
            load = load.header("Placement-Consistency: local");
        }
        token.clone_into(&mut load.token);
        Ok(Subject {
            name,
            load,
            cluster,
            rounds: Vec::new(),
        })
    }

    async fn table(&self, mut subjects: Vec<Subject>) -> anyhow::Result<()> {
        for _ in 0..self.rounds {
            for subject in &mut subjects {
                progress(subject.name);
                let ids = subject.cluster.ids();
                let nodes = pids(&mut subject.cluster, ids);
                let measured = subject.load.measure(&nodes, &[]).await?;
                subject.rounds.push(measured);
            }
        }
        println!(
            "| | requests/s | p50 | processor time of the nodes per request | compared with the first |"
        );
        println!("|---|---:|---:|---:|---:|");
        let mut first = None;
        for mut subject in subjects {
            let rounds = &mut subject.rounds;
            rounds.sort_by(|one, other| one.cpu_ms.total_cmp(&other.cpu_ms));
            let median = rounds[self.rounds / 2];
            let ratio = median.cpu_ms / *first.get_or_insert(median.cpu_ms);
            let (name, per_second) = (subject.name, median.per_second);
            let (p50, cpu) = (ms(median.p50_ms), median.cpu_ms * 1e3);
            println!("| {name} | {per_second:.0} | {p50} | {cpu:.1} µs | {ratio:.2} × |");
        }
        Ok(())
    }
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    ensure!(options.rounds > 0, "--rounds must be at least 1");
    let program = std::env::current_exe()?;
    let directory = program.parent().context("this program has no folder")?;
    progress("starting Keystone");
    let keystone = Keystone::start(directory).await?;
    keystone
        .people("service", &[(PLACEMENT, "service")])
        .await?;
    let token = keystone.token(PLACEMENT).await?;
    let asking = format!(
        "[auth]\nstrategy = \"keystone\"\n[keystone]\nauth_url = \"{}\"\nusername = \"placement\"\n\
         password = \"{PASSWORD}\"\n",
        keystone.url()
    );
    let mut subjects = Vec::new();
    for (name, is_secured, config, token) in [
        ("plain, noauth2", false, "", "admin"),
        ("plain, Keystone", false, &asking, &token),
        ("TLS, noauth2", true, "", "admin"),
        ("TLS, Keystone", true, &asking, &token),
    ] {
        subjects.push(options.subject(name, 1, is_secured, config, token).await?);
    }
    let clients = options.clients;
    println!("One node, local reads of inventories, {clients} clients:\n");
    options.table(subjects).await?;
    let subjects = vec![
        options.subject("plain", 3, false, "", "admin").await?,
        options.subject("TLS", 3, true, "", "admin").await?,
    ];
    println!("\nThree nodes, `PUT /allocations` through all of them, {clients} clients:\n");
    options.table(subjects).await
}
