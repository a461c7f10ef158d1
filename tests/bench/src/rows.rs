//! Reads, candidates and writes of one node and of three, and of others beside them in the same run.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use placement_client::{ApiRequest, CandidateQuery};
use placement_tests::cluster::{COUNTED_ONLY, Cluster};

use crate::axum_server::Axum;
use crate::clouds::{Cloud, Shape, boundless, devices_query};
use crate::etcd::Etcd;
use crate::load::{Load, Request, Sample, gets, reads, writes};
use crate::upstream::Upstream;
use crate::{Plot, ms, pids, progress, urls};

/// Upstream answers few requests in a second.
const UPSTREAM_SECONDS_MIN: u64 = 10;

#[derive(Args)]
pub(crate) struct Options {
    /// Seconds per figure.
    #[arg(long, default_value_t = 3)]
    seconds: u64,

    /// Only these rows; several separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Row>,

    /// Sizes of the flat cloud in hosts, rising; several separated by commas. All other figures are of the first.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000")]
    hosts: Vec<u64>,

    /// Hosts of the nested cloud, of seven providers each; the PCI cloud has half as many, with eight devices each.
    #[arg(long, default_value_t = 1000)]
    trees: u64,

    /// Draws the cost of candidates against the size of the cloud into this file, as SVG.
    #[arg(long)]
    plot: Option<PathBuf>,
}

/// `scripts/bench compare`: the same, and beside it openstack-placement 16.0.0 (uwsgi, 5 processes of 25 threads, on
/// MariaDB), etcd (three nodes) and axum with a fixed answer. Fails if a bar is missed.
#[derive(Args)]
pub(crate) struct Compare {
    /// Only beside these.
    peers: Vec<Peer>,

    #[command(flatten)]
    options: Options,

    /// A Python venv with openstack-placement, PyMySQL and pyuwsgi; scripts/bench makes one.
    #[arg(long, env = "PLACEMENT_UPSTREAM_VENV", hide = true)]
    venv: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Peer {
    Upstream,
    Etcd,
    Axum,
}

#[derive(Clone, Copy, PartialEq, Debug, ValueEnum)]
enum Row {
    Reads,
    Candidates,
    Writes,
    OneWriter,
}

/// The figure of a line that is held against that of the first line for the same request.
#[derive(Clone, Copy, PartialEq)]
enum Quantity {
    PerSecond,
    P50,
    Cpu,
}
use Quantity::{Cpu, P50, PerSecond};

/// What must hold.
#[derive(Clone, Copy)]
enum Bar {
    /// So many times as good as this line is the first one, at least.
    AtLeast(f64),
    /// The same, at most: where this line is ours, too.
    AtMost(f64),
    /// The median, in milliseconds.
    Within(f64),
}

struct Line {
    row: Row,
    what: String,
    who: String,
    sample: Sample,
    quantity: Quantity,
    bar: Option<Bar>,
}

#[derive(Default)]
struct Table {
    lines: Vec<Line>,
    failures: Vec<String>,
}

/// A cluster with a cloud.
struct Ours {
    cluster: Cluster,
    who: String,
    /// The node that is read from.
    asked: u64,
    /// Its process, and those of the others.
    pids: [Vec<u32>; 2],
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    measure(options, &[], None).await
}

pub(crate) async fn compare(compare: &Compare) -> anyhow::Result<()> {
    let peers = match compare.peers.as_slice() {
        [] => &[Peer::Upstream, Peer::Etcd, Peer::Axum],
        some => some,
    };
    measure(&compare.options, peers, compare.venv.as_deref()).await
}

async fn measure(options: &Options, peers: &[Peer], venv: Option<&Path>) -> anyhow::Result<()> {
    ensure!(options.seconds > 0, "--seconds is 1 or more");
    ensure!(
        options.hosts.is_sorted() && !options.hosts.is_empty(),
        "--hosts are to rise"
    );
    let mut table = Table::default();
    options.one_node(&mut table, peers).await?;
    options.three_nodes(&mut table).await?;
    if options.wants(Row::OneWriter) {
        table.add(
            Row::OneWriter,
            "1 connection",
            "4 KiB appended, fdatasync",
            P50,
            None,
            syncs(options.seconds),
        );
    }
    if peers.contains(&Peer::Etcd) {
        options.etcd(&mut table).await?;
    }
    if peers.contains(&Peer::Upstream) {
        let venv = venv.context("PLACEMENT_UPSTREAM_VENV is not set; scripts/bench sets it")?;
        options.upstream(&mut table, venv).await?;
    }
    let missed = table.print();
    if let Some(file) = &options.plot {
        table.plot(options).draw(file)?;
    }
    for failure in &table.failures {
        println!("\nNot measured: {failure}");
    }
    let failed = table.failures.len();
    ensure!(
        missed + failed == 0,
        "{missed} bars missed, {failed} figures not measured"
    );
    Ok(())
}

impl Options {
    fn wants(&self, row: Row) -> bool {
        self.only.is_empty() || self.only.contains(&row)
    }

    fn flat(&self) -> Cloud {
        Cloud::of(Shape::Flat, self.hosts[0])
    }

    fn load(&self, servers: &[String], requests: Vec<Request>, connections: usize) -> Load {
        Load::on(servers, requests, connections).seconds(self.seconds)
    }

    async fn one_node(&self, table: &mut Table, peers: &[Peer]) -> anyhow::Result<()> {
        if !(self.wants(Row::Reads) || self.wants(Row::Writes)) {
            return Ok(());
        }
        let ours = Ours::start(1, self.flat()).await?;
        if self.wants(Row::Reads) {
            for (what, requests) in self.reads() {
                let load = self.load(&ours.reader(), requests.clone(), 16);
                table.add(
                    Row::Reads,
                    what,
                    &ours.who,
                    PerSecond,
                    None,
                    ours.measure(&load).await,
                );
                if peers.contains(&Peer::Axum) {
                    let path = &requests[0].1;
                    let answer = ours.cluster.client().call(ApiRequest::get(path)).await?;
                    let axum = Axum::start(&answer.body).await?;
                    let load = Load {
                        servers: axum.servers(),
                        ..load
                    };
                    let sample = load.measure(&[axum.pid()], &[]).await;
                    let bar = Some(Bar::AtLeast(0.65));
                    table.add(Row::Reads, what, "bare axum", PerSecond, bar, sample);
                }
            }
        }
        if self.wants(Row::Writes) {
            self.writes(table, &ours, &[16, 64]).await?;
        }
        Ok(())
    }

    fn reads(&self) -> [(&'static str, Vec<Request>); 2] {
        let consumers = gets(&self.flat().consumers(), |uuid| {
            format!("/allocations/{uuid}")
        });
        [
            (
                "GET …/inventories, 16 connections",
                reads(&self.flat().roots()),
            ),
            ("GET /allocations/{c}, 16 connections", consumers),
        ]
    }

    async fn three_nodes(&self, table: &mut Table) -> anyhow::Result<()> {
        let ours = Ours::start(3, self.flat()).await?;
        if self.wants(Row::Reads) {
            for promise in ["linearizable", "local"] {
                for connections in [1, 16] {
                    let load = self.load(&ours.reader(), reads(&self.flat().roots()), connections);
                    let load = load.header(&format!("Placement-Consistency: {promise}"));
                    let what =
                        format!("GET …/inventories from a follower, {connections} connections");
                    let who = format!("{}, {promise}", ours.who);
                    table.add(
                        Row::Reads,
                        &what,
                        &who,
                        P50,
                        None,
                        ours.measure(&load).await,
                    );
                }
            }
        }
        if self.wants(Row::Candidates) {
            for (what, query, _, _) in FLAT {
                self.candidates(table, &ours, what, &query(self.flat()), 16, None)
                    .await;
            }
        }
        if self.wants(Row::OneWriter) {
            self.writes(table, &ours, &[1]).await?;
        }
        if self.wants(Row::Writes) {
            self.writes(table, &ours, &[16, 64, 256]).await?;
        }
        drop(ours);
        if self.wants(Row::Candidates) {
            for &hosts in &self.hosts[1..] {
                let cloud = Cloud::of(Shape::Flat, hosts);
                let ours = Ours::start(3, cloud).await?;
                let query = cloud.query().limit(10);
                let bar = Some(Bar::AtMost(1.2));
                self.candidates(table, &ours, TEN, &query, 16, bar).await;
            }
            let nested = Cloud::of(Shape::Nested, self.trees);
            let ours = Ours::start(3, nested).await?;
            self.candidates(table, &ours, NESTED, &nested.query().limit(10), 16, None)
                .await;
            drop(ours);
            let ours = Ours::start(3, Cloud::of(Shape::Pci, self.trees / 2)).await?;
            for groups in [1, 2, 4, 8] {
                let bar = Some(Bar::Within(2.5));
                self.candidates(table, &ours, &pci(groups), &devices_query(groups), 1, bar)
                    .await;
            }
        }
        Ok(())
    }

    async fn candidates(
        &self,
        table: &mut Table,
        ours: &Ours,
        what: &str,
        query: &CandidateQuery,
        connections: usize,
        bar: Option<Bar>,
    ) {
        let load = self.load(&ours.reader(), vec![get(query)], connections);
        let quantity = if connections == 1 { P50 } else { Cpu };
        table.add(
            Row::Candidates,
            what,
            &ours.who,
            quantity,
            bar,
            ours.measure(&load).await,
        );
    }

    async fn writes(
        &self,
        table: &mut Table,
        ours: &Ours,
        connections: &[usize],
    ) -> anyhow::Result<()> {
        boundless(&ours.cluster.client()).await?;
        for &count in connections {
            let load = self.load(&urls(&ours.cluster, ours.cluster.ids()), writes(), count);
            let (row, what, quantity) = write_row(count, ours.cluster.ids().len());
            table.add(
                row,
                &what,
                &ours.who,
                quantity,
                None,
                ours.measure(&load).await,
            );
        }
        Ok(())
    }

    async fn etcd(&self, table: &mut Table) -> anyhow::Result<()> {
        if !(self.wants(Row::Writes) || self.wants(Row::OneWriter)) {
            return Ok(());
        }
        let etcd = Etcd::start().await?;
        for count in [1, 16, 64, 256] {
            let (row, what, quantity) = write_row(count, 3);
            if self.wants(row) {
                let bar = Some(Bar::AtLeast(if count == 1 { 1.25 } else { 1.5 }));
                table.add(
                    row,
                    &what,
                    "etcd",
                    quantity,
                    bar,
                    etcd.puts(count, self.seconds).await,
                );
            }
        }
        Ok(())
    }

    async fn upstream(&self, table: &mut Table, venv: &Path) -> anyhow::Result<()> {
        let seconds = self.seconds.max(UPSTREAM_SECONDS_MIN);
        let measure = async |upstream: &Upstream, requests, connections, may_fail| {
            let load = Load::on(&upstream.servers(), requests, connections).seconds(seconds);
            Load { may_fail, ..load }
                .measure(&upstream.pids(), &[])
                .await
        };
        let mut add = |row, what: &str, cloud: Cloud, quantity, bar, sample| {
            table.add(
                row,
                what,
                &format!("upstream, {cloud}"),
                quantity,
                bar,
                sample,
            );
        };
        let least = |times| Some(Bar::AtLeast(times));
        for (nth, &hosts) in self.hosts.iter().enumerate() {
            // Of the largest clouds it answers too seldom to be measured.
            if hosts > 10_000 || (nth > 0 && !self.wants(Row::Candidates)) {
                continue;
            }
            let cloud = Cloud::of(Shape::Flat, hosts);
            let upstream = Upstream::start(venv, cloud).await?;
            if self.wants(Row::Reads) && nth == 0 {
                for (what, requests) in self.reads() {
                    let sample = measure(&upstream, requests, 16, false).await;
                    add(Row::Reads, what, cloud, PerSecond, least(200.0), sample);
                }
            }
            let asked = if nth == 0 { &FLAT[..] } else { &FLAT[..1] };
            for (what, query, connections, bar) in asked {
                if self.wants(Row::Candidates) {
                    let requests = vec![get(&query(cloud))];
                    let sample = measure(&upstream, requests, *connections, false).await;
                    add(Row::Candidates, what, cloud, Cpu, least(*bar), sample);
                }
            }
            if self.wants(Row::Writes) && nth == 0 {
                boundless(&upstream.client()).await?;
                let (row, what, quantity) = write_row(16, 3);
                // It gives up on conflicts between its own threads.
                let sample = measure(&upstream, writes(), 16, true).await;
                add(row, &what, cloud, quantity, least(150.0), sample);
            }
        }
        if self.wants(Row::Candidates) {
            let cloud = Cloud::of(Shape::Nested, self.trees);
            let upstream = Upstream::start(venv, cloud).await?;
            let sample = measure(&upstream, vec![get(&cloud.query().limit(10))], 16, false).await;
            add(Row::Candidates, NESTED, cloud, Cpu, least(4000.0), sample);
            drop(upstream);
            let cloud = Cloud::of(Shape::Pci, self.trees / 2);
            let upstream = Upstream::start(venv, cloud).await?;
            // With more devices it does not come to an end.
            for groups in [1, 2] {
                let sample = measure(&upstream, vec![get(&devices_query(groups))], 1, false).await;
                add(
                    Row::Candidates,
                    &pci(groups),
                    cloud,
                    P50,
                    least(500.0),
                    sample,
                );
            }
        }
        Ok(())
    }
}

const TEN: &str = "flat, limit=10, 16 connections";
const NESTED: &str = "nested, limit=10, 16 connections";
/// What is asked of the flat cloud, by how many, and how many times less it costs us than upstream.
type Asked = (&'static str, fn(Cloud) -> CandidateQuery, usize, f64);
const FLAT: [Asked; 2] = [
    (TEN, |cloud| cloud.query().limit(10), 16, 4000.0),
    ("flat, no limit, 16 connections", Cloud::query, 16, 300.0),
];

fn pci(groups: u32) -> String {
    format!("PCI, {groups} devices, limit=1000, 1 connection")
}

fn get(query: &CandidateQuery) -> Request {
    ("GET", query.path(), String::new())
}

fn write_row(connections: usize, nodes: usize) -> (Row, String, Quantity) {
    match (connections, nodes) {
        (1, _) => (Row::OneWriter, "1 connection".to_owned(), P50),
        (_, 1) => (
            Row::Writes,
            format!("{connections} connections, one node"),
            PerSecond,
        ),
        _ => (Row::Writes, format!("{connections} connections"), PerSecond),
    }
}

impl Ours {
    async fn start(nodes: u64, cloud: Cloud) -> anyhow::Result<Self> {
        progress(&format!("starting {nodes} nodes"));
        let mut cluster = Cluster::start_with(nodes, COUNTED_ONLY).await?;
        cloud.seed(&cluster.clients()).await?;
        let asked = cluster.followers().await?.first().copied().unwrap_or(1);
        let others = (1..=nodes).filter(|id| *id != asked);
        Ok(Self {
            who: format!("{nodes} of ours, {cloud}"),
            pids: [pids(&mut cluster, [asked]), pids(&mut cluster, others)],
            cluster,
            asked,
        })
    }

    fn reader(&self) -> Vec<String> {
        urls(&self.cluster, [self.asked])
    }

    async fn measure(&self, load: &Load) -> anyhow::Result<Sample> {
        load.measure(&self.pids[0], &self.pids[1]).await
    }
}

/// What the disk can do alone: append 4 KiB and fdatasync, again and again.
fn syncs(seconds: u64) -> anyhow::Result<Sample> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("synced");
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let started = Instant::now();
    let mut took = Vec::new();
    while started.elapsed() < Duration::from_secs(seconds) {
        let begun = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    took.sort_by(f64::total_cmp);
    let at = |percent: usize| took[(took.len() - 1) * percent / 100];
    Ok(Sample {
        requests: took.len() as f64,
        per_second: took.len() as f64 / seconds as f64,
        p50_ms: at(50),
        p99_ms: at(99),
        ..Sample::default()
    })
}

impl Table {
    fn add(
        &mut self,
        row: Row,
        what: &str,
        who: &str,
        quantity: Quantity,
        bar: Option<Bar>,
        sample: anyhow::Result<Sample>,
    ) {
        let name = format!("{row:?}: {what}: {who}");
        match sample {
            Ok(sample) => {
                let Sample {
                    per_second, p50_ms, ..
                } = sample;
                progress(&format!("{name}: {per_second:.0}/s, p50 {}", ms(p50_ms)));
                let (what, who) = (what.to_owned(), who.to_owned());
                self.lines.push(Line {
                    row,
                    what,
                    who,
                    sample,
                    quantity,
                    bar,
                });
            }
            // The other figures are worth having.
            Err(error) => {
                progress(&format!("{name}: {error:#}"));
                self.failures.push(format!("{name}: {error:#}"));
            }
        }
    }

    /// Prints all lines, those for the same request together, and counts the bars that were missed.
    fn print(&self) -> usize {
        println!(
            "| row | request | service | per second | p50 | p99 | CPU of all processes | of the one asked | beside \
             it, the first is better by | bar | |\n|---|---|---|---:|---:|---:|---:|---:|---:|---|---|"
        );
        let mut missed = 0;
        let is_first =
            |nth: &usize| self.first(&self.lines[*nth]) as *const Line == &self.lines[*nth];
        for first in (0..self.lines.len())
            .filter(is_first)
            .map(|nth| &self.lines[nth])
        {
            let same = |line: &&Line| line.row == first.row && line.what == first.what;
            for line in self.lines.iter().filter(same) {
                let ratio = line.quantity.ratio(&first.sample, &line.sample);
                let (bar, met) = match line.bar {
                    None => (String::new(), true),
                    Some(Bar::AtLeast(least)) => (format!("≥ {least} ×"), ratio >= least),
                    Some(Bar::AtMost(most)) => (format!("≤ {most} ×"), ratio <= most),
                    Some(Bar::Within(most)) => {
                        (format!("p50 ≤ {most} ms"), line.sample.p50_ms <= most)
                    }
                };
                let verdict = match (bar.is_empty(), met) {
                    (true, _) => "",
                    (_, true) => "met",
                    (_, false) => "missed",
                };
                missed += usize::from(!met);
                let ratio = match std::ptr::eq(line, first) {
                    true => String::new(),
                    false => format!("{ratio:.2} × ({})", line.quantity.name()),
                };
                let Sample {
                    per_second,
                    p50_ms,
                    p99_ms,
                    cpu_ms,
                    cpu_of_asked_ms,
                    ..
                } = line.sample;
                println!(
                    "| {:?} | {} | {} | {per_second:.0} | {} | {} | {} | {} | {ratio} | {bar} | {verdict} |",
                    line.row,
                    line.what,
                    line.who,
                    ms(p50_ms),
                    ms(p99_ms),
                    ms(cpu_ms),
                    ms(cpu_of_asked_ms),
                );
            }
        }
        missed
    }

    /// The first line for the same request.
    fn first(&self, line: &Line) -> &Line {
        let same = |other: &&Line| line.row == other.row && line.what == other.what;
        self.lines.iter().find(same).unwrap_or(&self.lines[0])
    }

    /// Processor time of a request for ten candidates, against the hosts of the cloud.
    fn plot(&self, options: &Options) -> Plot {
        let mut plot = Plot::new(
            "10 allocation candidates of a flat cloud",
            "hosts",
            "CPU per request, ms",
        );
        for who in ["3 of ours", "upstream"] {
            for &hosts in &options.hosts {
                let name = format!("{who}, {}", Cloud::of(Shape::Flat, hosts));
                let found = self
                    .lines
                    .iter()
                    .find(|line| line.what == TEN && line.who == name);
                if let Some(line) = found {
                    plot.add(who, hosts as f64, line.sample.cpu_of_asked_ms);
                }
            }
        }
        plot
    }
}

impl Quantity {
    fn name(self) -> &'static str {
        match self {
            PerSecond => "per second",
            P50 => "p50",
            Cpu => "CPU",
        }
    }

    /// How many times as good the first is as the other.
    fn ratio(self, first: &Sample, other: &Sample) -> f64 {
        match self {
            PerSecond => first.per_second / other.per_second,
            P50 => other.p50_ms / first.p50_ms,
            Cpu => other.cpu_of_asked_ms / first.cpu_of_asked_ms,
        }
    }
}
