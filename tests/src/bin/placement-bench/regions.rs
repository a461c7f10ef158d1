//! What distance costs: five voters in three regions and a learner at a site of its own, whose links are as
//! long as is said.

mod failover;
mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Args;
use placement_client::{Client, Consistency};
use placement_tests::cluster::{COUNTED_ONLY, Cluster};
use placement_tests::load::Measured;
use uuid::Uuid;

use super::{PROVIDERS, estates, machine, progress, work};
pub(super) use report::replace;
use report::{Costs, Report, Throughput};

/// Where each node stands. The last is a learner.
const SITES: [&str; 6] = ["north", "north", "middle", "middle", "south", "edge"];
const VOTERS: u64 = 5;
const LEARNER: u64 = 6;
/// Where the leader is to be.
const LEADERS_SITE: &str = "north";
/// How long leadership may take to be where it is wanted.
const SETTLED: Duration = Duration::from_secs(120);

/// Two voters in the north, where the leader is, two in the middle, one in the south, and a learner at the
/// edge. All sites are equally far from each other; within a site there is no distance. Everything is on this
/// machine, and what goes between sites goes through delay lines of this process.
#[derive(Args)]
pub(super) struct Options {
    /// Seconds per figure.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,

    /// Round trips between sites, in milliseconds, separated by commas; 0, a LAN, is always among them.
    #[arg(long, value_delimiter = ',', default_value = "30,100")]
    round_trips: Vec<u64>,

    /// A further round trip, for throughput alone, in milliseconds.
    #[arg(long, default_value_t = 150)]
    far: u64,

    /// How many clients write at once; several separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256,1024")]
    clients: Vec<usize>,

    /// Leaves out the losses of the leader's region.
    #[arg(long)]
    no_failover: bool,

    /// Bits a second of the link to each node, to see what compression is worth; throughput is measured there with
    /// `[peer] compress` on and off, and nothing else is.
    #[arg(long)]
    bits_per_s: Option<u32>,

    /// Writes table and plot into regions.md and beside it in this folder.
    #[arg(long)]
    docs: Option<PathBuf>,
}

/// A cluster over sites.
struct Sites {
    cluster: Cluster,
    config: String,
    /// The longest silence before an election.
    election: Duration,
}

impl Sites {
    async fn start(
        round_trip_ms: u64,
        bits_per_s: Option<u32>,
        more: &str,
    ) -> anyhow::Result<Self> {
        let election_ms = 1_500.max(12 * round_trip_ms);
        let config = format!(
            "[log]\nlevel = \"warn\"\n{COUNTED_ONLY}[cluster]\nleader_preference = [\"{LEADERS_SITE}\"]\n\
             [raft]\nround_trip_ms = {round_trip_ms}\nelection_max_ms = {election_ms}\n{more}"
        );
        let cluster = match bits_per_s {
            Some(bits_per_s) => Cluster::prepare_linked(VOTERS, &config, bits_per_s)?,
            None => Cluster::prepare_far(VOTERS, &config)?,
        };
        let mut sites = Self {
            cluster,
            config,
            election: Duration::from_millis(election_ms),
        };
        progress("starting five voters and a learner");
        for id in 1..=VOTERS {
            sites.start_node(id)?;
        }
        sites.cluster.wait_healthy().await?;
        sites.cluster.add_place();
        sites.start_node(LEARNER)?;
        sites.cluster.admit(LEARNER).await?;
        sites.settle().await?;
        Ok(sites)
    }

    fn start_node(&mut self, id: u64) -> anyhow::Result<()> {
        let region = SITES[usize::try_from(id - 1)?];
        self.cluster.start_node_at(id, region)
    }

    fn stretch(&self, round_trip: Duration) {
        let site = |id: u64| SITES[usize::try_from(id - 1).expect("few nodes")];
        self.cluster
            .stretch(|one, other| match site(one) == site(other) {
                true => Duration::ZERO,
                false => round_trip,
            });
    }

    /// Waits until the leader is where it is wanted; which it is.
    async fn settle(&self) -> anyhow::Result<u64> {
        let begun = Instant::now();
        loop {
            let leader = self.cluster.leader().await?;
            if SITES[usize::try_from(leader - 1)?] == LEADERS_SITE {
                return Ok(leader);
            }
            if begun.elapsed() > SETTLED {
                bail!("node {leader} leads still, with\n{}", self.config);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// A node of each site that does not lead, with the name of its site.
    async fn asked(&self) -> anyhow::Result<Vec<(&'static str, u64)>> {
        let leader = self.settle().await?;
        let mut asked: Vec<(&'static str, u64)> = Vec::new();
        for id in 1..=LEARNER {
            let site = SITES[usize::try_from(id - 1)?];
            if id != leader && asked.iter().all(|(name, _)| *name != site) {
                asked.push((site, id));
            }
        }
        Ok(asked)
    }

    /// The clients of a site.
    fn clients_at(&self, name: &str) -> Vec<Client> {
        let ids = (1..=LEARNER).zip(SITES).filter(|(_, site)| *site == name);
        ids.map(|(id, _)| self.cluster.client_of(id)).collect()
    }
}

/// The middle one, in milliseconds, of calls that all must succeed.
fn median(measured: &Measured, what: &str) -> anyhow::Result<f64> {
    ensure!(measured.errors == 0, "{what}: {} failed", measured.errors);
    ensure!(!measured.latencies.is_empty(), "{what}: none was measured");
    Ok(measured.quantile(0.5).as_secs_f64() * 1e3)
}

pub(super) async fn run(options: &Options) -> anyhow::Result<()> {
    println!("{}", machine());
    let duration = Duration::try_from_secs_f64(options.seconds).context("--seconds")?;
    if let Some(bits_per_s) = options.bits_per_s {
        return thin(options, duration, bits_per_s).await;
    }
    let begun = Instant::now();
    let mut round_trips = vec![0];
    round_trips.extend(options.round_trips.iter().copied().filter(|ms| *ms > 0));
    let longest = round_trips.iter().copied().chain([options.far]).max();
    let mut sites = Sites::start(longest.unwrap_or_default(), None, "").await?;
    let providers = estates::boundless(&sites.cluster.client(), PROVIDERS).await?;
    let mut report = Report::new(sites.election);

    for &ms in &round_trips {
        sites.stretch(Duration::from_millis(ms));
        for (site, id) in sites.asked().await? {
            progress(&format!("round trips of {ms} ms, at {site}"));
            let costs = costs(&sites.cluster.client_of(id), &providers, duration).await?;
            report.costs.push((ms, site, costs));
        }
    }
    let mut lengths = round_trips.clone();
    if !lengths.contains(&options.far) {
        lengths.push(options.far);
    }
    for &ms in &lengths {
        sites.stretch(Duration::from_millis(ms));
        sites.settle().await?;
        let clients = sites.clients_at(LEADERS_SITE);
        for &count in &options.clients {
            progress(&format!("round trips of {ms} ms, {count} clients write"));
            // Enough for several rounds of each.
            let duration = duration.max(Duration::from_millis(8 * ms));
            let measured = work::writes(&clients, &providers, count, duration).await;
            report.throughput.push(Throughput {
                round_trip_ms: ms,
                clients: count,
                per_second: measured.per_second(),
                errors: measured.errors,
            });
        }
    }
    if !options.no_failover {
        for &ms in &round_trips {
            sites.stretch(Duration::from_millis(ms));
            progress(&format!(
                "round trips of {ms} ms, the leader's region is lost"
            ));
            report
                .failovers
                .push((ms, failover::measure(&mut sites, &providers).await?));
        }
    }
    report.took = begun.elapsed();
    print!("{}", report.text());
    if let Some(folder) = &options.docs {
        report.write(folder)?;
    }
    Ok(())
}

/// What each kind of request costs one client of one node.
async fn costs(client: &Client, providers: &[Uuid], duration: Duration) -> anyhow::Result<Costs> {
    let writer = [client.clone().with_session()];
    let written = work::writes(&writer, providers, 1, duration).await;
    let token = (writer[0].session_index()).context("a write gives an index")?;
    let read = async |promise: Consistency| {
        let reader = [client.clone().with_consistency(promise)];
        work::reads(&reader, providers, 1, duration).await
    };
    Ok(Costs {
        local: median(&read(Consistency::Local).await, "local reads")?,
        session: median(&read(Consistency::Session(token)).await, "session reads")?,
        linearizable: median(&read(Consistency::Linearizable).await, "linearizable reads")?,
        write: median(&written, "writes")?,
    })
}

/// What compression is worth where links are thin.
async fn thin(options: &Options, duration: Duration, bits_per_s: u32) -> anyhow::Result<()> {
    println!(
        "\n| `[peer] compress` | clients | writes/s | bytes per write to other regions | before compression |"
    );
    println!("|---|---:|---:|---:|---:|");
    for compress in ["never", "regions"] {
        let more = format!("[peer]\ncompress = \"{compress}\"\n");
        let sites = Sites::start(options.far, Some(bits_per_s), &more).await?;
        let providers = estates::boundless(&sites.cluster.client(), PROVIDERS).await?;
        sites.stretch(Duration::from_millis(options.far));
        let leader = sites.settle().await?;
        // The link to the other node of its site is as thin, and what goes there is not compressed.
        let clients = [sites.cluster.client_of(leader)];
        for &count in &options.clients {
            progress(&format!("compress = {compress}, {count} clients write"));
            let sent = |text: &str, name: &str| -> f64 {
                let far = (1..=LEARNER)
                    .zip(SITES)
                    .filter(|(_, site)| *site != LEADERS_SITE);
                far.map(|(id, _)| sample(text, name, id)).sum()
            };
            let before = metrics(&sites.cluster, leader).await?;
            let measured = work::writes(&clients, &providers, count, duration).await;
            let after = metrics(&sites.cluster, leader).await?;
            let per_write =
                |name| (sent(&after, name) - sent(&before, name)) / measured.calls as f64;
            println!(
                "| {compress} | {count} | {:.0} | {:.0} | {:.0} |",
                measured.per_second(),
                per_write("placement_peer_sent_bytes_total"),
                per_write("placement_peer_sent_plain_bytes_total"),
            );
        }
    }
    Ok(())
}

/// What `/metrics` of a node says.
pub(super) async fn metrics(cluster: &Cluster, id: u64) -> anyhow::Result<String> {
    let client = Client::new([cluster.place(id).admin()])?;
    let answer = client
        .call(placement_client::ApiRequest::get("/metrics"))
        .await?;
    Ok(String::from_utf8(answer.body.to_vec())?)
}

/// The sample of a metric that is about a peer; 0 if there is none.
pub(super) fn sample(text: &str, name: &str, peer: u64) -> f64 {
    let start = format!("{name}{{peer=\"{peer}\"}} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&start));
    value.and_then(|value| value.parse().ok()).unwrap_or(0.0)
}
