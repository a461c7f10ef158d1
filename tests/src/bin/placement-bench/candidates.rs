//! What `GET /allocation_candidates` costs on a follower of a cluster, for clouds of several shapes.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Args;
use http::StatusCode;
use placement_client::{AllocationCandidates, CandidateQuery};
use placement_tests::cluster::{COUNTED_ONLY, Cluster};
use placement_tests::load::Measured;
use placement_tests::process_cost::{cpu_time, forget_peak, memory};

use super::estates::{Cloud, Shape, devices_query};
use super::{machine, ms, progress};

const NODES: u64 = 3;
const WARM_UP_REQUESTS: u64 = 3;

/// At least this many requests per figure, so that a p99 is more than the slowest of a few…
const REQUESTS_MIN: usize = 100;
/// …unless that takes so many times longer than asked for.
const PATIENCE: u32 = 6;

const FLAT_RATIO_MAX: f64 = 2.0;
const PCI_LATENCY_MAX: Duration = Duration::from_millis(100);
const PCI_MEMORY_MAX: u64 = 64 << 20;
const LATENCY_MAX: Duration = Duration::from_secs(1);

/// Asks one follower of three nodes for allocation candidates, one request at a time, in clouds that
/// are seeded through the REST API. Ends with the bars that must be met, and fails if one is missed.
#[derive(Args)]
pub(super) struct Options {
    /// Seconds per figure.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,

    /// Sizes of the flat cloud in hosts, rising; several separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000")]
    hosts: Vec<u64>,

    /// Trees of seven providers in the nested cloud.
    #[arg(long, default_value_t = 1000)]
    trees: u64,

    /// Hosts with eight one-unit PCI devices in the PCI cloud.
    #[arg(long, default_value_t = 100)]
    pci_hosts: u64,
}

/// What one question cost.
struct Figure {
    measured: Measured,
    cpu_per_request: Duration,
    /// How far the node's memory rose at its highest, in bytes.
    memory: u64,
}

/// One cloud with the node that is asked about it.
struct Bench {
    cluster: Cluster,
    asked: u64,
    duration: Duration,
}

pub(super) async fn run(options: &Options) -> anyhow::Result<()> {
    let duration = Duration::try_from_secs_f64(options.seconds)
        .context("--seconds is a number of seconds, such as 3")?;
    ensure!(
        options.hosts.is_sorted(),
        "--hosts must rise: the larger cloud is the smaller one with hosts added"
    );
    println!("{}", machine());
    println!("\n## {NODES} nodes: GET /allocation_candidates on a follower, one at a time\n");
    println!(
        "| cloud | asked for | candidates | answer | requests | p50 | p99 | longest | CPU per request | memory |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut bars = Bars::default();
    flat(options, duration, &mut bars).await?;
    nested(options, duration, &mut bars).await?;
    pci(options, duration, &mut bars).await?;
    bars.report()
}

async fn flat(options: &Options, duration: Duration, bars: &mut Bars) -> anyhow::Result<()> {
    let mut bench = Bench::start(duration).await?;
    let mut made = 0;
    let mut limited = Vec::new();
    for &hosts in &options.hosts {
        let cloud = Cloud::of(Shape::Flat, hosts);
        cloud.seed(&bench.cluster.clients(), made..hosts).await?;
        made = hosts;
        let (query, cloud) = (cloud.query(), cloud.to_string());
        let ten = query.clone().limit(10);
        let figure = bench.measure(&cloud, "limit=10", &ten, bars).await?;
        limited.push((hosts, figure.cpu_per_request));
        bench.measure(&cloud, "no limit", &query, bars).await?;
    }
    if let [(few, cheap), .., (many, dear)] = limited[..] {
        let ratio = dear.as_secs_f64() / cheap.as_secs_f64();
        bars.add(
            format!(
                "flat with limit=10 at {many} hosts within {FLAT_RATIO_MAX} times its CPU time at \
                 {few}: {ratio:.2} times"
            ),
            ratio <= FLAT_RATIO_MAX,
        );
    }
    Ok(())
}

async fn nested(options: &Options, duration: Duration, bars: &mut Bars) -> anyhow::Result<()> {
    let mut bench = Bench::start(duration).await?;
    let cloud = Cloud::of(Shape::Nested, options.trees);
    cloud.seed(&bench.cluster.clients(), 0..cloud.size).await?;
    let (query, cloud) = (cloud.query(), cloud.to_string());
    let ten = query.clone().limit(10);
    bench.measure(&cloud, "limit=10", &ten, bars).await?;
    bench.measure(&cloud, "no limit", &query, bars).await?;
    Ok(())
}

async fn pci(options: &Options, duration: Duration, bars: &mut Bars) -> anyhow::Result<()> {
    let mut bench = Bench::start(duration).await?;
    let cloud = Cloud::of(Shape::Pci, options.pci_hosts);
    cloud.seed(&bench.cluster.clients(), 0..cloud.size).await?;
    let cloud = cloud.to_string();
    for groups in [1, 2, 4, 8] {
        let query = devices_query(groups);
        let asked_for = format!("{groups} devices, limit=1000");
        let figure = bench.measure(&cloud, &asked_for, &query, bars).await?;
        if groups == 8 {
            pci_bars(&figure, bars);
        }
    }
    Ok(())
}

fn pci_bars(figure: &Figure, bars: &mut Bars) {
    let p99 = figure.measured.quantile(0.99);
    bars.add(
        format!(
            "PCI, 8 devices, within {PCI_LATENCY_MAX:?}: p99 {}",
            ms(p99)
        ),
        p99 <= PCI_LATENCY_MAX,
    );
    bars.add(
        format!(
            "PCI, 8 devices, within {}: {} more than before",
            mib(PCI_MEMORY_MAX),
            mib(figure.memory)
        ),
        figure.memory <= PCI_MEMORY_MAX,
    );
}

impl Bench {
    async fn start(duration: Duration) -> anyhow::Result<Self> {
        progress(&format!("starting {NODES} nodes"));
        let config = format!("[log]\nlevel = \"warn\"\n{COUNTED_ONLY}");
        let cluster = Cluster::start_with(NODES, &config).await?;
        let asked = *cluster
            .followers()
            .await?
            .first()
            .context("three nodes have followers")?;
        Ok(Self {
            cluster,
            asked,
            duration,
        })
    }

    /// Asks again and again, prints what it cost, and holds it against the bar for all.
    async fn measure(
        &mut self,
        cloud: &str,
        asked_for: &str,
        query: &CandidateQuery,
        bars: &mut Bars,
    ) -> anyhow::Result<Figure> {
        progress(&format!("{cloud}, {asked_for}"));
        let pid = self.cluster.process(self.asked).pid();
        forget_peak(pid)?;
        let before = memory(pid)?;
        let (candidates, bytes) = self.warm_up(query).await?;
        let cpu_before = cpu_time(pid)?;
        let measured = self.ask(query).await?;
        let cpu = cpu_time(pid)?.saturating_sub(cpu_before);
        let requests = measured.latencies.len();
        let longest = measured.quantile(1.0);
        let figure = Figure {
            cpu_per_request: cpu.div_f64(requests as f64),
            memory: memory(pid)?.peak.saturating_sub(before.resident),
            measured,
        };
        println!(
            "| {cloud} | {asked_for} | {candidates} | {} | {requests} | {} | {} | {} | {} | {} |",
            kib(bytes),
            ms(figure.measured.quantile(0.5)),
            ms(figure.measured.quantile(0.99)),
            ms(longest),
            ms(figure.cpu_per_request),
            mib(figure.memory),
        );
        if longest > LATENCY_MAX {
            let what = format!("{cloud}, {asked_for}: longest {}", ms(longest));
            bars.too_long.push(what);
        }
        Ok(figure)
    }

    /// The first answers, looked at: how many candidates, how many bytes.
    async fn warm_up(&self, query: &CandidateQuery) -> anyhow::Result<(usize, u64)> {
        let client = self.cluster.client_of(self.asked);
        let mut seen = (0, 0);
        for _ in 0..WARM_UP_REQUESTS {
            let answer = client.call(query.request()).await?;
            let found: AllocationCandidates = answer.json()?;
            seen = (found.allocation_requests.len(), answer.body.len() as u64);
        }
        ensure!(seen.0 > 0, "{} has no candidate", query.path());
        Ok(seen)
    }

    async fn ask(&self, query: &CandidateQuery) -> anyhow::Result<Measured> {
        let client = self.cluster.client_of(self.asked);
        client.call(query.request()).await?;
        let mut latencies = Vec::new();
        let started = Instant::now();
        while started.elapsed() < self.duration
            || (latencies.len() < REQUESTS_MIN && started.elapsed() < self.duration * PATIENCE)
        {
            let asked = Instant::now();
            let answer = client.request_once(query.request()).await?;
            latencies.push(asked.elapsed());
            if answer.status != StatusCode::OK {
                bail!("{}: {:?}", query.path(), answer.error());
            }
        }
        let elapsed = started.elapsed();
        latencies.sort_unstable();
        Ok(Measured {
            elapsed,
            calls: latencies.len() as u64,
            latencies,
            errors: 0,
        })
    }
}

/// What must hold, and whether it did.
#[derive(Default, Clone)]
struct Bars {
    all: Vec<(String, bool)>,
    too_long: Vec<String>,
}

impl Bars {
    fn add(&mut self, what: String, met: bool) {
        self.all.push((what, met));
    }

    fn report(mut self) -> anyhow::Result<()> {
        let slow = match self.too_long.as_slice() {
            [] => "none".to_owned(),
            some => some.join("; "),
        };
        let met = self.too_long.is_empty();
        self.add(format!("no request above {LATENCY_MAX:?}: {slow}"), met);
        println!("\n| bar | |\n|---|---|");
        for (what, met) in &self.all {
            println!("| {what} | {} |", if *met { "met" } else { "MISSED" });
        }
        let missed = self.all.iter().filter(|(_, met)| !met).count();
        ensure!(missed == 0, "{missed} bars missed");
        Ok(())
    }
}

fn kib(bytes: u64) -> String {
    format!("{:.1} KiB", bytes as f64 / 1024.0)
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(bars: Bars) -> Result<(), String> {
        bars.report().map_err(|error| error.to_string())
    }

    #[test]
    fn a_missed_bar_is_an_error() {
        let mut bars = Bars::default();
        assert_eq!(told(bars.clone()), Ok(()));
        bars.add("within 1 s: 0.9 s".to_owned(), true);
        assert_eq!(told(bars.clone()), Ok(()));
        bars.add("within 2 times: 2.1 times".to_owned(), false);
        assert_eq!(told(bars.clone()), Err("1 bars missed".to_owned()));
        bars.too_long.push("longest 1001 ms".to_owned());
        assert_eq!(told(bars), Err("2 bars missed".to_owned()));
    }
}
