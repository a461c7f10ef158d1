//! Reads, candidates and writes of one node and of three, and of others in the same run.

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
use crate::{ms, pids, plot, progress, urls};

/// Upstream answers few requests in a second.
const UPSTREAM_SECONDS_MIN: u64 = 10;

/// Reads, candidates and writes of one node and of three.
#[derive(Args)]
pub(crate) struct Options {
    /// Seconds per figure.
    #[arg(long, default_value_t = 3)]
    seconds: u64,

    /// Only these rows; several separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Row>,

    /// Sizes of the flat cloud in hosts; several separated by commas. All but ten candidates are asked of the first.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000")]
    hosts: Vec<u64>,

    /// Hosts of the nested cloud, of seven providers each; the PCI cloud has half as many, with eight devices each.
    #[arg(long, default_value_t = 500)]
    trees: u64,

    /// Draws the cost of ten candidates against the size of the cloud into this file, as SVG.
    #[arg(long)]
    plot: Option<PathBuf>,
}

/// The same, and in the same run openstack-placement 16.0.0 (uwsgi, 5 processes of 25 threads, on MariaDB), etcd (three
/// nodes) and axum with a fixed answer. Fails if a bar is missed.
#[derive(Args)]
pub(crate) struct Compare {
    /// Only these.
    peers: Vec<Peer>,

    #[command(flatten)]
    pub(crate) options: Options,

    /// A Python venv with openstack-placement, PyMySQL and pyuwsgi; scripts/bench makes one.
    #[arg(long, env = "PLACEMENT_UPSTREAM_VENV", hide = true, default_value = "")]
    venv: PathBuf,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Peer {
    Axum,
    Etcd,
    Upstream,
}

#[derive(Clone, Copy, PartialEq, Debug, ValueEnum)]
enum Row {
    Reads,
    Candidates,
    Writes,
    OneWriter,
}

/// What is asked of a service.
struct Asked {
    row: Row,
    what: String,
    requests: Vec<Request>,
    connections: usize,
    /// The promise that a read asks for.
    promise: &'static str,
    /// Who is asked the same, and so many times better ours is to be.
    bars: Vec<(Peer, f64)>,
}

/// Of how many nodes and in which cloud it is asked.
struct Scene {
    nodes: u64,
    cloud: Cloud,
    asked: Vec<Asked>,
}

type Measured = (String, anyhow::Result<Sample>, Option<f64>);

/// `scripts/bench` and `scripts/bench compare`.
pub(crate) async fn run(options: &Options, compare: Option<&Compare>) -> anyhow::Result<()> {
    ensure!(options.seconds > 0, "--seconds is 1 or more");
    let all = [Peer::Axum, Peer::Etcd, Peer::Upstream];
    let (peers, venv) = match compare {
        None => (&[][..], Path::new("")),
        Some(Compare { peers, venv, .. }) if peers.is_empty() => (&all[..], venv.as_path()),
        Some(Compare { peers, venv, .. }) => (peers.as_slice(), venv.as_path()),
    };
    println!(
        "| row | request | cloud | service | per second | p50 | p99 | CPU of all processes | of the one asked | the first is \
         better by | bar | |\n|---|---|---|---|---:|---:|---:|---:|---:|---:|---|---|"
    );
    let (mut missed, mut points) = (0, Vec::new());
    for mut scene in options.scenes() {
        let is_wanted =
            |asked: &Asked| options.only.is_empty() || options.only.contains(&asked.row);
        scene.asked.retain(is_wanted);
        for asked in &mut scene.asked {
            asked.bars.retain(|(peer, _)| peers.contains(peer));
        }
        if scene.asked.is_empty() {
            continue;
        }
        let is_flat = matches!(scene.cloud.shape, Shape::Flat);
        for (asked, lines) in scene
            .asked
            .iter()
            .zip(scene.measure(options.seconds, venv).await?)
        {
            missed += asked.print(scene.cloud, &lines);
            for (who, sample, _) in &lines {
                if let (true, Ok(sample)) = (is_flat && asked.what == TEN, sample) {
                    points.push((who.clone(), scene.cloud.size as f64, sample.cpu_of_asked_ms));
                }
            }
        }
    }
    if let Some(file) = &options.plot {
        let title = "10 allocation candidates of a flat cloud";
        plot(file, title, "hosts", "CPU per request, ms", &points)?;
    }
    ensure!(missed == 0, "{missed} bars missed or figures not measured");
    Ok(())
}

const TEN: &str = "candidates, limit=10";

impl Options {
    fn scenes(&self) -> Vec<Scene> {
        use Peer::{Axum, Etcd, Upstream};
        let flat = Cloud::of(Shape::Flat, self.hosts[0]);
        let inventories = || reads(&flat.roots());
        let allocations = gets(&flat.consumers(), |uuid| format!("/allocations/{uuid}"));
        let candidates = |what: &str, query: &CandidateQuery, connections, bar: f64| {
            let requests = vec![("GET", query.path(), String::new())];
            let bars = [(Upstream, bar)].into_iter().filter(|(_, bar)| *bar > 0.0);
            Asked::of(Row::Candidates, what, requests, connections).compared_with(bars)
        };
        let follower = |promise, connections| {
            let what = format!("GET …/inventories from a follower, {promise}");
            let asked = Asked::of(Row::Reads, &what, inventories(), connections);
            Asked { promise, ..asked }
        };
        let write = |connections| {
            let row = if connections == 1 {
                Row::OneWriter
            } else {
                Row::Writes
            };
            Asked::of(row, "PUT /allocations", writes(), connections)
        };
        let mut scenes = vec![
            Scene {
                nodes: 1,
                cloud: flat,
                asked: vec![
                    Asked::of(Row::Reads, "GET …/inventories", inventories(), 16)
                        .compared_with([(Axum, 0.65), (Upstream, 200.0)]),
                    Asked::of(Row::Reads, "GET /allocations/{c}", allocations, 16)
                        .compared_with([(Axum, 0.65), (Upstream, 200.0)]),
                    write(16),
                    write(64),
                ],
            },
            Scene {
                nodes: 3,
                cloud: flat,
                asked: vec![
                    follower("linearizable", 1),
                    follower("local", 1),
                    follower("linearizable", 16),
                    follower("local", 16),
                    candidates(TEN, &flat.query().limit(10), 16, 4000.0),
                    candidates("candidates, no limit", &flat.query(), 16, 300.0),
                    write(1).compared_with([(Etcd, 1.25)]),
                    write(16).compared_with([(Etcd, 1.5), (Upstream, 150.0)]),
                    write(64).compared_with([(Etcd, 1.5)]),
                    write(256).compared_with([(Etcd, 1.5)]),
                ],
            },
        ];
        let mut search = |cloud, asked| {
            scenes.push(Scene {
                nodes: 3,
                cloud,
                asked,
            })
        };
        for &hosts in &self.hosts[1..] {
            let cloud = Cloud::of(Shape::Flat, hosts);
            let asked = candidates(TEN, &cloud.query().limit(10), 16, 0.0);
            search(cloud, vec![asked]);
        }
        let nested = Cloud::of(Shape::Nested, self.trees);
        let asked = candidates(TEN, &nested.query().limit(10), 16, 4000.0);
        search(nested, vec![asked]);
        // With more devices upstream does not come to an end.
        let devices = [(1, 500.0), (2, 500.0), (4, 0.0), (8, 0.0)].map(|(groups, bar)| {
            let what = format!("candidates, {groups} devices, limit=1000");
            candidates(&what, &devices_query(groups), 1, bar)
        });
        search(Cloud::of(Shape::Pci, self.trees / 2), devices.into());
        scenes
    }
}

impl Scene {
    /// Starts each service once and asks it all that it is to be asked.
    async fn measure(&self, seconds: u64, venv: &Path) -> anyhow::Result<Vec<Vec<Measured>>> {
        let mut lines: Vec<Vec<Measured>> = self.asked.iter().map(|_| Vec::new()).collect();
        let mut add = |nth: usize, who: &str, sample: anyhow::Result<Sample>, bar| {
            progress(&format!("{who}: {}", self.asked[nth].what));
            lines[nth].push((who.to_owned(), sample, bar));
        };
        let compared_with = |peer| {
            let asked = self.asked.iter().enumerate();
            asked.filter_map(move |(nth, asked)| {
                let bar = asked.bars.iter().find(|(of, _)| *of == peer)?.1;
                Some((nth, asked, Some(bar)))
            })
        };

        progress(&format!("starting {} nodes", self.nodes));
        let mut cluster = Cluster::start_with(self.nodes, COUNTED_ONLY).await?;
        self.cloud.seed(&cluster.clients()).await?;
        boundless(&cluster.client()).await?;
        let reader = cluster.followers().await?.first().copied().unwrap_or(1);
        let others: Vec<u64> = cluster
            .ids()
            .into_iter()
            .filter(|id| *id != reader)
            .collect();
        let pids = [pids(&mut cluster, [reader]), pids(&mut cluster, others)];
        let who = format!("{} of ours", self.nodes);
        for (nth, asked) in self.asked.iter().enumerate() {
            let servers = match asked.row {
                Row::Writes | Row::OneWriter => urls(&cluster, cluster.ids()),
                _ => urls(&cluster, [reader]),
            };
            let load = asked.load(&servers, seconds);
            add(nth, &who, load.measure(&pids[0], &pids[1]).await, None);
            if asked.row == Row::OneWriter {
                add(nth, "4 KiB appended, fdatasync", syncs(seconds), None);
            }
        }
        for (nth, asked, bar) in compared_with(Peer::Axum) {
            let answer = cluster
                .client()
                .call(ApiRequest::get(&asked.requests[0].1))
                .await?;
            let axum = Axum::start(&answer.body).await?;
            let load = asked.load(&axum.servers(), seconds);
            let sample = load.measure(&[axum.pid()], &[]).await;
            add(nth, "bare axum", sample, bar);
        }
        drop(cluster);
        if compared_with(Peer::Etcd).next().is_some() {
            let etcd = Etcd::start().await?;
            for (nth, asked, bar) in compared_with(Peer::Etcd) {
                let sample = etcd.puts(asked.connections, seconds).await;
                add(nth, "etcd", sample, bar);
            }
        }
        if compared_with(Peer::Upstream).next().is_some() {
            let upstream = Upstream::start(venv).await?;
            self.cloud.seed(&[upstream.client()]).await?;
            boundless(&upstream.client()).await?;
            for (nth, asked, bar) in compared_with(Peer::Upstream) {
                let mut load = asked.load(&upstream.servers(), seconds.max(UPSTREAM_SECONDS_MIN));
                // It gives up on conflicts between its own threads.
                load.may_fail = asked.row == Row::Writes;
                let sample = load.measure(&upstream.pids(), &[]).await;
                add(nth, "upstream", sample, bar);
            }
        }
        Ok(lines)
    }
}

impl Asked {
    fn of(row: Row, what: &str, requests: Vec<Request>, connections: usize) -> Self {
        let (what, promise, bars) = (what.to_owned(), "linearizable", Vec::new());
        Self {
            row,
            what,
            requests,
            connections,
            promise,
            bars,
        }
    }

    fn compared_with(mut self, bars: impl IntoIterator<Item = (Peer, f64)>) -> Self {
        self.bars.extend(bars);
        self
    }

    fn load(&self, servers: &[String], seconds: u64) -> Load {
        Load::on(servers, self.requests.clone(), self.connections)
            .seconds(seconds)
            .header(&format!("Placement-Consistency: {}", self.promise))
    }

    /// Prints a line for each service and counts the bars that were missed.
    fn print(&self, cloud: Cloud, lines: &[Measured]) -> usize {
        let mut missed = 0;
        for (who, sample, bar) in lines {
            let (row, what, connections) = (self.row, &self.what, self.connections);
            let sample = match sample {
                Ok(sample) => sample,
                Err(error) => {
                    missed += 1;
                    println!("| {row:?} | {what} | {cloud} | {who} | not measured: {error:#} |");
                    continue;
                }
            };
            // What is held against each other: of one client the latency, of searches the cost.
            let first = lines[0].1.as_ref().ok();
            let ratio = first.map(|first| match (connections, row) {
                (1, _) => sample.p50_ms / first.p50_ms,
                (_, Row::Candidates) => sample.cpu_of_asked_ms / first.cpu_of_asked_ms,
                _ => first.per_second / sample.per_second,
            });
            let verdict = match (bar, ratio) {
                (Some(bar), Some(ratio)) if ratio >= *bar => format!("≥ {bar} × | met"),
                (Some(bar), _) => {
                    missed += 1;
                    format!("≥ {bar} × | missed")
                }
                (None, _) => "|".to_owned(),
            };
            println!(
                "| {row:?} | {what}, {connections} connections | {cloud} | {who} | {:.0} | {} | {} | {} | {} | {:.2} × | \
                 {verdict} |",
                sample.per_second,
                ms(sample.p50_ms),
                ms(sample.p99_ms),
                ms(sample.cpu_ms),
                ms(sample.cpu_of_asked_ms),
                ratio.unwrap_or(f64::NAN),
            );
        }
        missed
    }
}

/// What the disk can do alone: append 4 KiB and fdatasync, again and again.
fn syncs(seconds: u64) -> anyhow::Result<Sample> {
    let mut file = tempfile::tempfile().context("a file to sync")?;
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
