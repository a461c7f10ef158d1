//! Cost of distance: five voters in three regions and a learner at its own site, over links of
//! configurable length.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use placement_client::Claim;
use uuid::Uuid;

use crate::clouds::boundless;
use crate::failover::Failover;
use crate::load::{Load, reads, writes};
use crate::sites::{LEADERS_SITE, LEARNER, Sites, site_of};
use crate::{failover, plot, progress, sum_of_peers, urls, write_into};

/// Tolerance in milliseconds, because the delay lines are late: a request may take this much longer
/// than its round trips plus twice its time on a LAN.
const LATE_MS: f64 = 5.0;
/// Throughput at this many clients is compared with the throughput on a LAN.
const BAR_CLIENTS: usize = 256;
const BAR_THROUGHPUT: f64 = 0.8;
/// Limit of a failover, in election timeouts until writes succeed again.
const BAR_FAILOVER: f64 = 3.0;

/// Measures what distance costs: two voters in the north, where the leader is, two in the middle,
/// one in the south, and a learner at the edge. All sites are equally far from each other; nodes of
/// a site have no distance. Everything runs on this machine; traffic between sites passes delay
/// lines of this process.
#[derive(Args)]
pub(crate) struct Options {
    /// Duration of each measurement, in seconds.
    #[arg(long, default_value_t = 2)]
    seconds: u64,

    /// Round-trip times between sites, in milliseconds, separated by commas. 0 (a LAN) is always
    /// measured too.
    #[arg(long, value_delimiter = ',', default_value = "30,100,150")]
    round_trips: Vec<u64>,

    /// Numbers of concurrent writers, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256,1024")]
    clients: Vec<usize>,

    /// Bandwidth of the link to each node, in bits per second, to measure the gain of compression;
    /// only throughput is measured then.
    #[arg(long)]
    bits_per_s: Option<u32>,

    /// Writes the tables into regions.md in this folder, and the plot to a file next to it.
    #[arg(long)]
    docs: Option<PathBuf>,
}

impl Options {
    fn longest(&self) -> u64 {
        self.round_trips.iter().copied().max().unwrap_or(0)
    }
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    if let Some(bits_per_s) = options.bits_per_s {
        return thin(options, bits_per_s).await;
    }
    let mut round_trips = vec![0];
    round_trips.extend(options.round_trips.iter().copied().filter(|ms| *ms > 0));
    let mut sites = Sites::start(options.longest(), None).await?;
    let providers = boundless(&sites.cluster.client()).await?;
    let mut text = costs(&mut sites, options, &round_trips, &providers).await?;
    let (table, points) = throughput(&mut sites, options, &round_trips).await?;
    text += &table;
    text += &losses(&mut sites, &round_trips, &providers).await?;
    print!("{text}");
    let Some(folder) = &options.docs else {
        return Ok(());
    };
    let title = "Writes over round trips between three regions";
    let file = folder.join("what-distance-costs.svg");
    plot(
        &file,
        title,
        "clients in the leader's region",
        "writes a second",
        &points,
    )?;
    write_into(
        &folder.join("regions.md"),
        "scripts/bench regions --docs docs",
        &text,
    )
}

fn mark(missed: bool) -> &'static str {
    if missed { " **missed**" } else { "" }
}

/// Medians of one client of one node, in milliseconds: local, session and linearizable reads, and
/// writes.
async fn medians(
    sites: &Sites,
    id: u64,
    providers: &[Uuid],
    seconds: u64,
) -> anyhow::Result<[f64; 4]> {
    let client = sites.cluster.client_of(id).with_session();
    let claim = Claim::by("project", "user").and(providers[0], &[("VCPU", 1)]);
    client.put_allocations(Uuid::new_v4(), &claim).await?;
    let token = client.session_index().context("a write gives an index")?;
    let servers = urls(&sites.cluster, [id]);
    let of = async |requests, promise: &str, more: Option<String>| {
        let mut load = Load::on(&servers, requests, 1).seconds(seconds);
        load = load.header(&format!("Placement-Consistency: {promise}"));
        load.headers.extend(more);
        anyhow::Ok(load.measure(&[], &[]).await?.p50_ms)
    };
    let token = format!("Placement-Min-Index: {}", token.as_str());
    Ok([
        of(reads(providers), "local", None).await?,
        of(reads(providers), "session", Some(token)).await?,
        of(reads(providers), "linearizable", None).await?,
        of(writes(), "linearizable", None).await?,
    ])
}

/// Measures each kind of request with one client at each site.
async fn costs(
    sites: &mut Sites,
    options: &Options,
    round_trips: &[u64],
    providers: &[Uuid],
) -> anyhow::Result<String> {
    let mut text = "Latencies are medians of one client, in milliseconds; the leader is in the north.\n\n\
                    | round trip | queried site | local read | session read | linearizable read | write |\n\
                    |---:|---|---:|---:|---:|---:|\n"
        .to_owned();
    let mut lan: Vec<(&str, [f64; 4])> = Vec::new();
    for &ms in round_trips {
        sites.set_round_trips(ms);
        for id in sites.asked().await? {
            let site = site_of(id);
            progress(&format!("round trips of {ms} ms, at {site}"));
            let costs = medians(sites, id, providers, options.seconds).await?;
            if ms == 0 {
                lan.push((site, costs));
            }
            let near = lan
                .iter()
                .find(|(at, _)| *at == site)
                .map_or(costs, |(_, costs)| *costs);
            // A write travels from the leader to the nearest other region; from another region it
            // first travels to the leader.
            let trips = [0, 0, 1, if site == LEADERS_SITE { 1 } else { 2 }];
            let cells = (0..4).map(|nth| {
                let bar = (trips[nth] * ms) as f64 + 2.0 * near[nth] + LATE_MS;
                format!("{:.1}{}", costs[nth], mark(costs[nth] > bar))
            });
            let _ = writeln!(
                text,
                "| {ms} ms | {site} | {} |",
                cells.collect::<Vec<_>>().join(" | ")
            );
        }
    }
    Ok(text)
}

/// Writes per second by clients in the leader's region.
async fn throughput(
    sites: &mut Sites,
    options: &Options,
    round_trips: &[u64],
) -> anyhow::Result<(String, Vec<(String, f64, f64)>)> {
    let mut text = "\n| round trip | clients in the leader's region | writes/s | relative to 0 ms | upper bound: \
                    clients / round trip, per s |\n|---:|---:|---:|---:|---:|\n"
        .to_owned();
    let mut points = Vec::new();
    let mut lan = Vec::new();
    for &ms in round_trips {
        sites.set_round_trips(ms);
        sites.settle().await?;
        let north = (1..=LEARNER).filter(|id| site_of(*id) == LEADERS_SITE);
        let servers = urls(&sites.cluster, north);
        for (nth, &clients) in options.clients.iter().enumerate() {
            progress(&format!("round trips of {ms} ms, {clients} clients write"));
            let load = Load::on(&servers, writes(), clients).seconds(options.seconds);
            let per_second = load.measure(&[], &[]).await?.per_second;
            if ms == 0 {
                lan.push(per_second);
            }
            let ratio = per_second / lan[nth];
            let most = match ms {
                0 => "-".to_owned(),
                ms => format!("{}", clients as u64 * 1000 / ms),
            };
            let missed = mark(clients == BAR_CLIENTS && ratio < BAR_THROUGHPUT);
            let _ = writeln!(
                text,
                "| {ms} ms | {clients} | {per_second:.0} | {ratio:.2}{missed} | {most} |"
            );
            points.push((format!("{ms:3} ms"), clients as f64, per_second));
        }
    }
    Ok((text, points))
}

/// Measures the loss of the leader's region.
async fn losses(
    sites: &mut Sites,
    round_trips: &[u64],
    providers: &[Uuid],
) -> anyhow::Result<String> {
    let mut text = format!(
        "\nThe longest election timeout is {} ms.\n\n\
         | round trip | time from the loss of the leader's region to the next write | in election \
         timeouts | acknowledged writes | lost writes |\n|---:|---:|---:|---:|---:|\n",
        sites.election_ms
    );
    for &ms in round_trips {
        sites.set_round_trips(ms);
        progress(&format!(
            "round trips of {ms} ms, the leader's region is lost"
        ));
        let Failover {
            took,
            acknowledged,
            lost,
        } = failover::measure(sites, providers).await?;
        let took_ms = took.as_millis();
        let elections = took_ms as f64 / sites.election_ms as f64;
        let missed = mark(elections > BAR_FAILOVER || lost > 0);
        let _ = writeln!(
            text,
            "| {ms} ms | {took_ms} ms | {elections:.2}{missed} | {acknowledged} | {lost} |"
        );
    }
    Ok(text)
}

/// Measures the gain of compression on thin links.
async fn thin(options: &Options, bits_per_s: u32) -> anyhow::Result<()> {
    println!(
        "| clients | writes/s | bytes per write to other regions | bytes before compression |"
    );
    println!("|---:|---:|---:|---:|");
    let sites = Sites::start(options.longest(), Some(bits_per_s)).await?;
    boundless(&sites.cluster.client()).await?;
    sites.set_round_trips(options.longest());
    let leader = sites.settle().await?;
    // The link to the other node of the leader's site is as thin; traffic on it is not compressed.
    let servers = urls(&sites.cluster, [leader]);
    let sent = async |metric| {
        let far = (1..=LEARNER).filter(|id| site_of(*id) != LEADERS_SITE);
        sum_of_peers(&sites.cluster, leader, metric, far).await
    };
    for &clients in &options.clients {
        progress(&format!("{clients} clients write"));
        const SENT: [&str; 2] = [
            "placement_peer_sent_bytes_total",
            "placement_peer_sent_plain_bytes_total",
        ];
        let before = [sent(SENT[0]).await?, sent(SENT[1]).await?];
        let sample = Load::on(&servers, writes(), clients)
            .seconds(options.seconds)
            .run()
            .await?;
        let per_write = [
            (sent(SENT[0]).await? - before[0]) / sample.requests,
            (sent(SENT[1]).await? - before[1]) / sample.requests,
        ];
        println!(
            "| {clients} | {:.0} | {:.0} | {:.0} |",
            sample.per_second, per_write[0], per_write[1]
        );
    }
    Ok(())
}
