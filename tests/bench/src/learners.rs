//! Cost of learners to the leader: processor time and bytes sent, compared with the same load
//! without learners.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use placement_tests::cluster::Cluster;

use crate::clouds::boundless;
use crate::load::{Load, writes};
use crate::{pids, progress, sum_of_peers, urls, write_into};

const VOTERS: u64 = 3;
const WRITERS: usize = 16;

/// Measures what learners cost the leader: three voters and a growing number of learners, all on
/// this machine, under the same modest load.
#[derive(Args)]
pub(crate) struct Options {
    /// Numbers of learners in ascending order, separated by commas; 0 is always measured first.
    #[arg(long, value_delimiter = ',', default_value = "5,10,20,40")]
    learners: Vec<u64>,

    /// Pause of each of 16 writers after each answer, in milliseconds.
    #[arg(long, default_value_t = 75)]
    pause_ms: u32,

    /// Duration of each measurement, in seconds.
    #[arg(long, default_value_t = 10)]
    seconds: u64,

    /// Writes the table into regions.md in this folder.
    #[arg(long)]
    docs: Option<PathBuf>,
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    let most = options.learners.iter().copied().max().unwrap_or_default();
    let room = u16::try_from(most).context("--learners")?;
    let mut cluster = Cluster::prepare_with_room(VOTERS, room, "")?;
    progress("starting three voters");
    for id in 1..=VOTERS {
        cluster.start_node(id)?;
    }
    cluster.wait_healthy().await?;
    boundless(&cluster.client_of(1)).await?;
    // Through the voters only, as clients of a region do.
    let mut load =
        Load::on(&urls(&cluster, 1..=VOTERS), writes(), WRITERS).seconds(options.seconds);
    load.pause_ms = options.pause_ms;

    let mut text = "| learners | writes/s | the leader's CPU per write | CPU per write and learner | bytes per write \
                    and learner |\n|---:|---:|---:|---:|---:|\n"
        .to_owned();
    let mut without = None;
    for learners in [0].into_iter().chain(options.learners.iter().copied()) {
        while (cluster.ids().len() as u64) < VOTERS + learners {
            let id = cluster.add_place().id;
            cluster.admit(id).await?;
            cluster.start_node(id)?;
            cluster.wait_ready(id).await?;
        }
        progress(&format!("{learners} learners"));
        let leader = cluster.leader().await?;
        let pid = pids(&mut cluster, [leader]);
        let sent = async || {
            let peers = VOTERS + 1..=VOTERS + learners;
            sum_of_peers(&cluster, leader, "placement_peer_sent_bytes_total", peers).await
        };
        let before = sent().await?;
        let sample = load.measure(&pid, &[]).await?;
        let sent = sent().await? - before;
        ensure!(
            leader == cluster.leader().await?,
            "another node became leader"
        );
        let cpu_us = sample.cpu_ms * 1e3;
        let beyond_us = cpu_us - *without.get_or_insert(cpu_us);
        // The writes include the second of warming up.
        let writes = sample.requests * (options.seconds + 1) as f64 / options.seconds as f64;
        let (cpu, bytes) = match learners {
            0 => ("-".to_owned(), "-".to_owned()),
            _ => {
                let count = learners as f64;
                (
                    format!("{:.1} µs", beyond_us / count),
                    format!("{:.0}", sent / writes / count),
                )
            }
        };
        let _ = writeln!(
            text,
            "| {learners} | {:.0} | {cpu_us:.0} µs | {cpu} | {bytes} |",
            sample.per_second
        );
    }
    print!("{text}");
    match &options.docs {
        Some(folder) => write_into(
            &folder.join("regions.md"),
            "scripts/bench learners --docs docs",
            &text,
        ),
        None => Ok(()),
    }
}
