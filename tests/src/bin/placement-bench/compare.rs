//! The same work against upstream's service and against a cluster of ours, one after the other.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use placement_client::Client;
use placement_tests::cluster::Cluster;
use placement_tests::load::Measured;
use placement_tests::process_cost::cpu_time;
use uuid::Uuid;

use super::upstream::Upstream;
use super::{estates, machine, ms, progress, work};

const NODES: u64 = 3;
/// Providers that are written to, so that clients seldom meet at one.
const WRITTEN: u128 = 64;
/// How many providers are read in turn.
const READ: u64 = 64;

/// Runs the same requests against openstack-placement 16.0.0 (uwsgi, 5 processes of 25 threads, on
/// MariaDB) and then against three nodes of ours with the default configuration, on this machine.
/// Nothing else runs meanwhile but the load. Processor time is that of all processes of the service,
/// its database or all its nodes included.
#[derive(Args)]
pub(super) struct Options {
    /// A Python venv with openstack-placement, PyMySQL and pyuwsgi; scripts/bench makes one.
    #[arg(long, env = "PLACEMENT_UPSTREAM_VENV")]
    venv: PathBuf,

    /// Seconds per figure.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,

    /// Hosts of the flat cloud that candidates are searched in.
    #[arg(long, default_value_t = 1000)]
    hosts: u64,

    /// How many clients ask at once; several separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64")]
    clients: Vec<usize>,
}

/// What is measured, in the order of the table.
#[derive(Clone, Copy)]
enum Request {
    Candidates,
    Inventories,
    Claim,
}

const REQUESTS: [Request; 3] = [Request::Candidates, Request::Inventories, Request::Claim];

impl Request {
    fn name(self, hosts: u64) -> String {
        match self {
            Self::Candidates => format!("10 allocation candidates of {hosts} hosts"),
            Self::Inventories => "one provider's inventories".to_owned(),
            Self::Claim => "PUT /allocations of a new consumer".to_owned(),
        }
    }
}

/// One of the two services.
enum Service {
    Upstream(Box<Upstream>),
    Ours(Box<Cluster>),
}

impl Service {
    /// A client for each address it has.
    fn clients(&self) -> Vec<Client> {
        match self {
            Self::Upstream(upstream) => vec![upstream.client()],
            Self::Ours(cluster) => cluster.clients(),
        }
    }

    fn cpu_time(&mut self) -> anyhow::Result<Duration> {
        match self {
            Self::Upstream(upstream) => upstream.cpu_time(),
            Self::Ours(cluster) => cluster
                .ids()
                .into_iter()
                .map(|id| cpu_time(cluster.process(id).pid()))
                .sum(),
        }
    }
}

/// One cell of the table.
struct Figure {
    measured: Measured,
    cpu_per_request: Duration,
}

pub(super) async fn run(options: &Options) -> anyhow::Result<()> {
    let duration = Duration::try_from_secs_f64(options.seconds)
        .context("--seconds is a number of seconds, such as 10")?;
    ensure!(options.hosts > 0, "--hosts is 1 or more");
    println!("{}", machine());
    let upstream = Service::Upstream(Box::new(Upstream::start(&options.venv).await?));
    let theirs = measure(upstream, options, duration).await?;
    progress(&format!("starting {NODES} nodes"));
    let ours = Service::Ours(Box::new(Cluster::start(NODES).await?));
    let ours = measure(ours, options, duration).await?;
    report(options, &theirs, &ours);
    Ok(())
}

async fn measure(
    mut service: Service,
    options: &Options,
    duration: Duration,
) -> anyhow::Result<Vec<Figure>> {
    let clients = service.clients();
    estates::flat(&clients, 0..options.hosts).await?;
    let hosts: Vec<Uuid> = (0..options.hosts.min(READ))
        .map(estates::root_uuid)
        .collect();
    let mut boundless = Vec::new();
    let mut figures = Vec::new();
    for request in REQUESTS {
        if matches!(request, Request::Claim) {
            // Only now: they would be candidates.
            boundless = estates::boundless(&clients[0], WRITTEN).await?;
        }
        for &count in &options.clients {
            progress(&format!("{}, {count} clients", request.name(options.hosts)));
            let before = service.cpu_time()?;
            let measured = match request {
                Request::Candidates => {
                    let query = estates::flat_query().limit(10);
                    work::candidates(&clients, &query, count, duration).await
                }
                Request::Inventories => work::reads(&clients, &hosts, count, duration).await,
                Request::Claim => work::writes(&clients, &boundless, count, duration).await,
            };
            let spent = service.cpu_time()?.saturating_sub(before);
            ensure!(
                measured.errors == 0 && !measured.latencies.is_empty(),
                "{} answers, {} errors: this run says nothing",
                measured.latencies.len(),
                measured.errors
            );
            figures.push(Figure {
                cpu_per_request: spent.div_f64(measured.calls as f64),
                measured,
            });
        }
    }
    Ok(figures)
}

fn report(options: &Options, theirs: &[Figure], ours: &[Figure]) {
    println!("\n## openstack-placement 16.0.0 on MariaDB, and three nodes, on one machine\n");
    println!("| request | clients | | per second | p50 | p99 | CPU per request |");
    println!("|---|---:|---|---:|---:|---:|---:|");
    let rows = REQUESTS
        .iter()
        .flat_map(|request| options.clients.iter().map(move |count| (request, count)));
    for ((request, clients), (theirs, ours)) in rows.zip(theirs.iter().zip(ours)) {
        let name = request.name(options.hosts);
        line(&name, *clients, "upstream", theirs);
        line(&name, *clients, "three nodes", ours);
        println!(
            "| | | **ratio** | **{:.0}** | **{:.0}** | **{:.0}** | **{:.0}** |",
            ours.measured.per_second() / theirs.measured.per_second(),
            ratio(theirs.measured.quantile(0.5), ours.measured.quantile(0.5)),
            ratio(theirs.measured.quantile(0.99), ours.measured.quantile(0.99)),
            ratio(theirs.cpu_per_request, ours.cpu_per_request),
        );
    }
}

fn line(name: &str, clients: usize, service: &str, figure: &Figure) {
    println!(
        "| {name} | {clients} | {service} | {:.0} | {} | {} | {} |",
        figure.measured.per_second(),
        ms(figure.measured.quantile(0.5)),
        ms(figure.measured.quantile(0.99)),
        ms(figure.cpu_per_request),
    );
}

fn ratio(theirs: Duration, ours: Duration) -> f64 {
    theirs.as_secs_f64() / ours.as_secs_f64()
}
