//! Rows: requests that placementd and other services get in turn, and the bars.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use placement_client::ApiRequest;
use placement_tests::cluster::Cluster;

use crate::axum_server::Axum;
use crate::bars::{Bars, Bound, Doubt, ROUNDS, median};
use crate::clouds::{Cloud, Shape, boundless, devices_query, flat_query};
use crate::etcd::Etcd;
use crate::load::{
    Asking, Load, Request, Sample, WARM_UP_S, claims, measured, one_claims, reads, writes,
};
use crate::upstream::Upstream;
use crate::{
    contention, cores, events, explain, json_writer, leases, ms, pids, progress, start, urls,
};

/// Upstream answers few requests per second.
const UPSTREAM_SECONDS_MIN: u64 = 5;
const UPSTREAM_SEARCH_SECONDS_MIN: u64 = 60;
/// A node flushes its rows to disk at least twice within this many writes.
const WRITES_WITH_SNAPSHOTS: f64 = 40_000.0;
/// Idle time of the load's processor, in percent, below which the load may have limited a rate.
const LOAD_IDLE_MIN: f64 = 5.0;

/// Measures placementd. Some rows of the table also measure a service for comparison: bare axum,
/// serde_json, etcd (three nodes) or openstack-placement 16.0.0 (uwsgi, 5 processes of 25 threads,
/// on MariaDB). There are five rounds, in each of which the services take turns. Fails if a figure
/// misses its target.
#[derive(Args)]
pub(crate) struct Options {
    /// Duration of each measurement, in seconds.
    #[arg(long, default_value_t = 3)]
    seconds: u64,

    /// Measures only these rows of the table, separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Row>,

    /// Numbers of hosts of the flat clouds (one provider per host), separated by commas. The row of
    /// ten candidates is measured with each cloud. Explanations, the bulk read and the start of a
    /// node are measured with the last cloud, all other rows that use a flat cloud with the first.
    /// The PCI cloud has half as many hosts as the first cloud.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
    hosts: Vec<u64>,

    /// A Python venv with openstack-placement, PyMySQL and pyuwsgi; scripts/bench creates one.
    #[arg(long, env = "PLACEMENT_UPSTREAM_VENV", hide = true)]
    venv: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Debug, ValueEnum)]
enum Row {
    /// Inventories of one provider, compared with bare axum.
    Reads,
    /// Ten candidates in clouds of each size.
    Candidates,
    /// All candidates, compared with the CPU time that serde_json alone needs to write the same
    /// answer.
    AllCandidates,
    /// A thousand candidates with one to eight devices.
    Pci,
    /// Writes by many clients, compared with etcd.
    Writes,
    /// Writes by one client at the leader and at a follower, compared with etcd.
    OneWriter,
    /// Claims in two requests, compared with upstream.
    Claims,
    /// Claims in one request, compared with claims in two requests.
    OneClaim,
    /// Clients that want the same hosts at once.
    Contention,
    /// Reads, ten candidates and writes, compared with upstream.
    Upstream,
    /// Writes while 100,000 leases of holds end, compared with writes alone.
    Leases,
    /// Writes with snapshots, compared with writes without.
    Snapshots,
    /// Explanations, the capacity and one tree, and the effect of endless explanations on other
    /// requests.
    Explain,
    /// Writes while event streams are open.
    Events,
    /// All content in one request, compared with requests provider by provider.
    Bulk,
    /// Start of a node, and memory per consumer.
    Start,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Service {
    Ours,
    /// placementd without flushes of its rows to disk.
    Unflushed,
    /// The same placementd with a search and a write in place of one request.
    SearchAndWrite,
    Axum,
    /// Not a service: only the serialization of an answer.
    SerdeJson,
    Etcd,
    Upstream,
}

/// For a rate more is better; for all other figures less is.
#[derive(Clone, Copy, PartialEq)]
enum Figure {
    PerSecond,
    P50,
    P99,
    Cpu,
    CpuOfAsked,
}

/// A figure and its limit. If there is a peer, the figure is the ratio to the peer's figure.
struct Bar {
    figure: Figure,
    peer: Option<Service>,
    bound: Option<f64>,
}

/// Requests to a service, and their bars.
struct Asked {
    row: Row,
    what: String,
    requests: Vec<Request>,
    connections: usize,
    nodes: Asking,
    /// Consistency level of a read.
    promise: &'static str,
    bars: Vec<Bar>,
}

/// Number of nodes, configuration and cloud that a group of rows shares.
struct Scene {
    nodes: u64,
    config: &'static str,
    cloud: Cloud,
    asked: Vec<Asked>,
}

/// A service, and its samples: one per round.
type Line = (Service, anyhow::Result<Vec<Sample>>);

/// Runs the rows that the options select and checks their bars.
pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    ensure!(options.seconds > 0, "--seconds must be at least 1");
    println!(
        "| row | request | cloud | service | per second | p50 | p99 | CPU of all processes | of the one asked | of the \
         load | services idle | load idle | stolen |\n\
         |---|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    let is_wanted = |row: Row| options.only.is_empty() || options.only.contains(&row);
    let mut bars = Bars::default();
    let measured = async {
        for mut scene in options.scenes() {
            scene.asked.retain(|asked| is_wanted(asked.row));
            if !scene.asked.is_empty() {
                scene.measure(options, &mut bars).await?;
            }
        }
        let hosts = *options.hosts.last().context("--hosts")?;
        if is_wanted(Row::Contention) {
            contention::measure(options.seconds, &mut bars).await?;
        }
        if is_wanted(Row::Leases) {
            leases::measure(options.seconds, &mut bars).await?;
        }
        if is_wanted(Row::Explain) {
            explain::measure(hosts, options.seconds, &mut bars).await?;
        }
        if is_wanted(Row::Events) {
            events::measure_streams(options.seconds, &mut bars).await?;
        }
        if is_wanted(Row::Bulk) {
            events::measure_bulk(hosts, &mut bars).await?;
        }
        if is_wanted(Row::Start) {
            start::measure(hosts, &mut bars).await?;
        }
        anyhow::Ok(())
    };
    let measured = measured.await;
    let held = bars.report();
    measured.and(held)
}

impl Options {
    fn scenes(&self) -> Vec<Scene> {
        use Figure::{Cpu, CpuOfAsked, P50, P99, PerSecond};
        use Service::{Axum, Etcd, SearchAndWrite, SerdeJson, Unflushed, Upstream};
        let first = self.hosts[0];
        let flat = Cloud::used(Shape::Flat, first);
        let scene = |nodes, cloud, asked| Scene {
            nodes,
            config: "",
            cloud,
            asked,
        };
        let inventories = || reads(&flat.roots());
        let local = Asked {
            promise: "local",
            ..Asked::new(Row::Reads, "GET …/inventories, local", inventories(), 16)
        };
        let ten = |row| {
            let requests = vec![("GET", flat_query().limit(10).path(), String::new())];
            Asked::new(row, "ten candidates", requests, 16)
        };
        let all = || {
            let requests = vec![("GET", flat_query().path(), String::new())];
            Asked::new(Row::AllCandidates, "all candidates", requests, 16)
        };
        let write = |row, connections| {
            Asked::new(row, "PUT /allocations", writes(), connections).at(Asking::All)
        };
        let one_writer = |nodes, place| {
            let what = format!("PUT /allocations at {place}");
            let asked = Asked::new(Row::OneWriter, &what, writes(), 1).at(nodes);
            asked.bar(P50, Etcd, 0.75)
        };
        let claim = |limit| {
            let what = format!("claims, limit={limit}");
            Asked::new(Row::Claims, &what, claims(limit), 64).at(Asking::All)
        };
        let one_claim = || {
            let what = "POST /placementd/v1/claims with `want`";
            let asked = Asked::new(Row::OneClaim, what, one_claims(), 64).at(Asking::All);
            let asked = asked.bar(Cpu, SearchAndWrite, 0.75);
            asked.bar(PerSecond, SearchAndWrite, 1.3)
        };
        // Number of devices, and the limit of the p50 in milliseconds.
        let devices = [(1, 0.5), (2, 0.5), (4, 0.6), (8, 1.0)].map(|(count, most)| {
            move || {
                let requests = vec![("GET", devices_query(count).path(), String::new())];
                let what = format!("{count} devices, limit=1000");
                (Asked::new(Row::Pci, &what, requests, 1), most)
            }
        });
        let pci = Cloud::used(Shape::Pci, first / 2);

        let mut scenes = vec![scene(1, flat, vec![local.bar(PerSecond, Axum, 0.65)])];
        for &hosts in &self.hosts {
            let most = match hosts {
                0..=1_000 => 0.045,
                1_001..=10_000 => 0.05,
                _ => 0.06,
            };
            let ten = ten(Row::Candidates).at_most(CpuOfAsked, most);
            scenes.push(scene(3, Cloud::used(Shape::Flat, hosts), vec![ten]));
        }
        scenes[1].asked.push(all().bar(CpuOfAsked, SerdeJson, 1.8));
        let plain = vec![
            ten(Row::Candidates).shown(CpuOfAsked, None),
            all().shown(CpuOfAsked, Some(SerdeJson)),
        ];
        let used_devices = devices.iter().map(|of| {
            let (asked, most) = of();
            asked.at_most(P50, most)
        });
        let plain_devices = devices.iter().map(|of| of().0.shown(P50, None));
        let many = [(16, 1.5), (64, 1.4), (256, 1.2)].map(|(connections, rate)| {
            let write = write(Row::Writes, connections).bar(Cpu, Etcd, 0.67);
            write.bar(PerSecond, Etcd, rate)
        });
        let one = [
            one_writer(Asking::Leader, "the leader"),
            one_writer(Asking::Follower, "a follower"),
        ];
        let follower = Asked::new(
            Row::Upstream,
            "GET …/inventories from a follower",
            inventories(),
            16,
        );
        scenes.extend([
            scene(3, Cloud::plain(Shape::Flat, first), plain),
            scene(3, pci, used_devices.collect()),
            scene(
                3,
                Cloud::plain(Shape::Pci, first / 2),
                plain_devices.collect(),
            ),
            scene(3, flat, many.into_iter().chain(one).collect()),
            Scene {
                nodes: 3,
                config: "[candidates]\nrandomize = true\n",
                cloud: flat,
                asked: vec![
                    claim(10).bar(PerSecond, Upstream, 700.0),
                    claim(1000).shown(PerSecond, Some(Upstream)),
                    one_claim(),
                    follower.shown(PerSecond, Some(Upstream)),
                    ten(Row::Upstream).shown(Cpu, Some(Upstream)),
                    write(Row::Upstream, 16).shown(PerSecond, Some(Upstream)),
                ],
            },
            scene(
                3,
                flat,
                vec![write(Row::Snapshots, 64).bar(P99, Unflushed, 1.3)],
            ),
        ]);
        scenes
    }
}

impl Scene {
    fn name(&self, service: Service) -> String {
        match service {
            Service::Ours => format!("{} of ours", self.nodes),
            Service::Unflushed => format!("{} of ours without snapshots", self.nodes),
            Service::SearchAndWrite => format!("{} of ours, search and write", self.nodes),
            Service::Axum => "bare axum".to_owned(),
            Service::SerdeJson => "serde_json".to_owned(),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    fn writes(&self) -> bool {
        let mut firsts = self.asked.iter().map(|asked| asked.requests[0].0);
        firsts.any(|method| method == "PUT")
    }

    fn has(&self, service: Service) -> bool {
        self.asked
            .iter()
            .any(|asked| asked.peers().contains(&service))
    }

    /// Starts each service once, runs all rows on all of them in turn, and prints the results.
    async fn measure(&self, options: &Options, bars: &mut Bars) -> anyhow::Result<()> {
        cores::move_to(&match self.nodes {
            1 => cores::FIRST.to_owned(),
            _ => cores::of_services()?,
        })?;
        let mut services = Services::start(self, options).await?;
        let mut rows: Vec<Vec<Line>> = self.asked.iter().map(Asked::lines).collect();
        for round in 1..=ROUNDS {
            for (asked, lines) in self.asked.iter().zip(&mut rows) {
                for (service, rounds) in lines {
                    let (who, what) = (self.name(*service), &asked.what);
                    progress(&format!("round {round} of {ROUNDS}, {who}: {what}"));
                    if let Ok(samples) = rounds {
                        match services.ask(*service, asked, options.seconds).await {
                            Ok(sample) => samples.push(sample),
                            Err(error) => *rounds = Err(error),
                        }
                    }
                }
            }
        }
        for (asked, lines) in self.asked.iter().zip(&rows) {
            for line in lines {
                asked.print(self, line);
            }
            for bar in &asked.bars {
                asked.judge(self, lines, bar, bars);
            }
        }
        Ok(())
    }
}

/// Services that run while a scene is measured.
struct Services {
    ours: Ours,
    unflushed: Option<Ours>,
    etcd: Option<Etcd>,
    upstream: Option<Upstream>,
}

struct Ours {
    cluster: Cluster,
    leader: u64,
    follower: u64,
}

impl Services {
    async fn start(scene: &Scene, options: &Options) -> anyhow::Result<Self> {
        let mut services = Self {
            ours: Ours::start(scene, "").await?,
            unflushed: None,
            etcd: None,
            upstream: None,
        };
        if scene.has(Service::Unflushed) {
            let config = "[raft]\nsnapshot_after = 1000000000\n";
            services.unflushed = Some(Ours::start(scene, config).await?);
        }
        if scene.has(Service::Etcd) {
            services.etcd = Some(Etcd::start().await?);
        }
        if scene.has(Service::Upstream) {
            let venv = options.venv.as_deref();
            let venv = venv.context("upstream needs --venv; scripts/bench creates one")?;
            let upstream = Upstream::start(venv).await?;
            scene.cloud.seed(&[upstream.client()]).await?;
            if scene.writes() {
                boundless(&upstream.client()).await?;
            }
            // Warms up: upstream's threads open their database connections and compile their
            // queries.
            for asked in &scene.asked {
                let load = asked.load(&upstream.servers(), UPSTREAM_SECONDS_MIN);
                // The result does not matter.
                let _ = load.run().await;
            }
            upstream.until_idle().await?;
            services.upstream = Some(upstream);
        }
        Ok(services)
    }

    async fn ask(
        &mut self,
        service: Service,
        asked: &Asked,
        seconds: u64,
    ) -> anyhow::Result<Sample> {
        const STARTED: &str = "measured services are started";
        let request = ApiRequest::get(&asked.requests[0].1);
        match service {
            Service::Ours => self.ours.ask(asked, seconds).await,
            Service::Unflushed => {
                self.unflushed
                    .as_mut()
                    .expect(STARTED)
                    .ask(asked, seconds)
                    .await
            }
            Service::SearchAndWrite => self.ours.ask(&asked.in_two_requests(), seconds).await,
            Service::Axum => {
                let answer = self.ours.cluster.client().call(request).await?;
                let axum = Axum::start(&answer.body).await?;
                let load = asked.load(&axum.servers(), seconds);
                load.measure(&[axum.pid()], &[]).await
            }
            Service::SerdeJson => {
                let answer = self.ours.cluster.client().call(request).await?;
                json_writer::write(&answer.body, seconds)
            }
            Service::Etcd => {
                let etcd = self.etcd.as_ref().expect(STARTED);
                let puts = |seconds| etcd.puts(asked.nodes, asked.connections, seconds);
                puts(WARM_UP_S).await?;
                measured([&etcd.pids(), &[]], puts(seconds)).await
            }
            Service::Upstream => {
                let upstream = self.upstream.as_ref().expect(STARTED);
                let least = if asked.requests[0].1.contains("allocation_candidates") {
                    UPSTREAM_SEARCH_SECONDS_MIN
                } else {
                    UPSTREAM_SECONDS_MIN
                };
                let mut load = asked.load(&upstream.servers(), seconds.max(least));
                // Upstream fails some requests because of conflicts between its own threads.
                load.may_fail = asked.nodes == Asking::All;
                let sample = measured([&upstream.pids(), &[]], load.run()).await;
                upstream.until_idle().await?;
                sample
            }
        }
    }
}

/// The follower that gets the requests; in a cluster of one node, that node.
async fn followed(cluster: &Cluster, leader: u64) -> anyhow::Result<u64> {
    Ok(*cluster.followers().await?.first().unwrap_or(&leader))
}

impl Ours {
    async fn start(scene: &Scene, config: &str) -> anyhow::Result<Self> {
        progress(&format!("starting {} nodes", scene.nodes));
        let config = format!("{}{config}", scene.config);
        let cluster = Cluster::start_with(scene.nodes, &config).await?;
        scene.cloud.seed(&cluster.clients()).await?;
        if scene.writes() {
            boundless(&cluster.client()).await?;
        }
        let leader = cluster.leader().await?;
        Ok(Self {
            leader,
            follower: followed(&cluster, leader).await?,
            cluster,
        })
    }

    async fn ask(&mut self, asked: &Asked, seconds: u64) -> anyhow::Result<Sample> {
        let all = self.cluster.ids();
        let (ids, first) = match asked.nodes {
            Asking::All => (all.clone(), self.follower),
            Asking::Leader => (vec![self.leader], self.leader),
            Asking::Follower => (vec![self.follower], self.follower),
        };
        let load = asked.load(&urls(&self.cluster, ids), seconds);
        let others = pids(&mut self.cluster, all.into_iter().filter(|id| *id != first));
        let first = pids(&mut self.cluster, [first]);
        let sample = load.measure(&first, &others).await?;
        let leader = self.cluster.leader().await?;
        if leader != self.leader {
            self.follower = followed(&self.cluster, leader).await?;
            self.leader = leader;
            bail!("the leader changed to node {leader}: the machine is busy");
        }
        ensure!(
            asked.row != Row::Snapshots || sample.requests >= WRITES_WITH_SNAPSHOTS,
            "{} writes are too few for a snapshot; raise --seconds",
            sample.requests
        );
        Ok(sample)
    }
}

impl Asked {
    fn new(row: Row, what: &str, requests: Vec<Request>, connections: usize) -> Self {
        Self {
            row,
            what: format!("{what}, {connections} connections"),
            requests,
            connections,
            nodes: Asking::Follower,
            promise: "linearizable",
            bars: Vec::new(),
        }
    }

    fn at(self, nodes: Asking) -> Self {
        Self { nodes, ..self }
    }

    /// The same claims, each by a search and a write.
    fn in_two_requests(&self) -> Self {
        Self {
            what: self.what.clone(),
            requests: claims(10),
            bars: Vec::new(),
            ..*self
        }
    }

    fn with(mut self, figure: Figure, peer: Option<Service>, bound: Option<f64>) -> Self {
        self.bars.push(Bar {
            figure,
            peer,
            bound,
        });
        self
    }

    /// Adds a bar on the ratio to a peer's figure.
    fn bar(self, figure: Figure, peer: Service, bound: f64) -> Self {
        self.with(figure, Some(peer), Some(bound))
    }

    fn at_most(self, figure: Figure, bound: f64) -> Self {
        self.with(figure, None, Some(bound))
    }

    fn shown(self, figure: Figure, peer: Option<Service>) -> Self {
        self.with(figure, peer, None)
    }

    fn peers(&self) -> Vec<Service> {
        let mut peers: Vec<_> = self.bars.iter().filter_map(|bar| bar.peer).collect();
        peers.dedup();
        peers
    }

    fn lines(&self) -> Vec<Line> {
        let services = [Service::Ours].into_iter().chain(self.peers());
        services.map(|service| (service, Ok(Vec::new()))).collect()
    }

    fn load(&self, servers: &[String], seconds: u64) -> Load {
        let times = if self.row == Row::Snapshots { 3 } else { 1 };
        Load::on(servers, self.requests.clone(), self.connections)
            .seconds(seconds * times)
            .header(&format!("Placement-Consistency: {}", self.promise))
    }

    /// Prints the medians of a service.
    fn print(&self, scene: &Scene, (service, rounds): &Line) {
        let Self { row, what, .. } = self;
        let (who, cloud) = (scene.name(*service), scene.cloud);
        match rounds {
            Err(error) => println!("| {row:?} | {what} | {cloud} | {who} | {error:#} |"),
            Ok(samples) => {
                let of = |figure: fn(&Sample) -> f64| {
                    median(&samples.iter().map(figure).collect::<Vec<_>>())
                };
                println!(
                    "| {row:?} | {what} | {cloud} | {who} | {:.0} | {} | {} | {} | {} | {} | {:.0} % | {:.0} % | {:.0} % |",
                    of(|sample| sample.per_second),
                    ms(of(|sample| sample.p50_ms)),
                    ms(of(|sample| sample.p99_ms)),
                    ms(of(|sample| sample.cpu_ms)),
                    ms(of(|sample| sample.cpu_of_asked_ms)),
                    ms(of(|sample| sample.cpu_of_load_ms)),
                    of(|sample| sample.shares.services_idle),
                    of(|sample| sample.shares.load_idle),
                    of(|sample| sample.shares.stolen),
                );
            }
        }
    }

    fn judge(&self, scene: &Scene, lines: &[Line], bar: &Bar, bars: &mut Bars) {
        let samples = |service| {
            let mut found = lines.iter().filter(|(of, _)| *of == service);
            found.find_map(|(_, rounds)| rounds.as_deref().ok())
        };
        let (figure, what) = (bar.figure, &self.what);
        let mut what = format!("{what}, {}: {}", scene.cloud, figure.name());
        if let Some(peer) = bar.peer {
            what = format!("{what}, ratio to {}", scene.name(peer));
        }
        let (Some(ours), Some(peers)) = (
            samples(Service::Ours),
            bar.peer.map_or(Some(&[][..]), samples),
        ) else {
            return bars.miss(&what, bar.bound.is_some());
        };
        let of = |sample: &Sample| figure.value_in(sample);
        let rounds: Vec<f64> = match bar.peer {
            None => ours.iter().map(of).collect(),
            Some(_) => (ours.iter().zip(peers))
                .map(|(ours, peer)| of(ours) / of(peer))
                .collect(),
        };
        let is_limited = |samples: &[Sample]| {
            let mut samples = samples.iter();
            figure == Figure::PerSecond
                && samples.any(|sample| sample.shares.load_idle < LOAD_IDLE_MIN)
        };
        let doubt = Doubt {
            is_higher: is_limited(ours),
            is_lower: is_limited(peers),
        };
        let bound = bar.bound.map(|bound| match figure {
            Figure::PerSecond => Bound::AtLeast(bound),
            _ => Bound::AtMost(bound),
        });
        bars.hold(&what, &rounds, bound, doubt, |value| match bar.peer {
            Some(_) => format!("{value:.2} ×"),
            None => ms(value),
        });
    }
}

impl Figure {
    fn value_in(self, sample: &Sample) -> f64 {
        match self {
            Self::PerSecond => sample.per_second,
            Self::P50 => sample.p50_ms,
            Self::P99 => sample.p99_ms,
            Self::Cpu => sample.cpu_ms,
            Self::CpuOfAsked => sample.cpu_of_asked_ms,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "per second",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Cpu => "CPU",
            Self::CpuOfAsked => "CPU of the queried node",
        }
    }
}
