//! What a node costs at rest: its start and its memory.

use std::time::Instant;

use clap::Args;
use placement_tests::cluster::{COUNTED_ONLY, Cluster};
use placement_tests::process_cost::memory;

use crate::clouds::{Cloud, Shape};
use crate::pids;
use crate::process_group::cpu_time;

const STARTS: usize = 3;

/// How long a node takes from the start of its process until it is ready, and its memory then: of an empty node,
/// and of one with a cloud. It is stopped properly before.
#[derive(Args)]
pub(crate) struct Options {
    /// Hosts, with three inventories each.
    #[arg(long, default_value_t = 100_000)]
    hosts: u64,

    /// Consumers of each host, with three classes each.
    #[arg(long, default_value_t = 10)]
    consumers: u64,
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    let mut cluster = Cluster::start_with(1, COUNTED_ONLY).await?;
    println!("| | start | CPU | resident | peak | on disk |\n|---|---:|---:|---:|---:|---:|");
    measure(&mut cluster, "empty").await?;
    let cloud = Cloud {
        consumers: options.consumers,
        ..Cloud::of(Shape::Flat, options.hosts)
    };
    cloud.seed(&cluster.clients()).await?;
    let count = options.hosts * (options.consumers + 1);
    measure(
        &mut cluster,
        &format!("{} hosts, {count} consumers", options.hosts),
    )
    .await
}

/// Prints the middle one of several starts.
async fn measure(cluster: &mut Cluster, what: &str) -> anyhow::Result<()> {
    // Most of the log would be read again otherwise.
    cluster.admin_of(1).compact().await?;
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        cluster.stop_node(1).await?;
        let started = Instant::now();
        cluster.start_node(1)?;
        cluster.wait_ready(1).await?;
        let took = started.elapsed();
        let pid = pids(cluster, [1])[0];
        starts.push((took, cpu_time(pid)?, memory(pid)?));
    }
    starts.sort_by_key(|(took, ..)| *took);
    let (took, cpu, memory) = &starts[STARTS / 2];
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    let mut disk = 0;
    for entry in std::fs::read_dir(cluster.data_dir(1).join("state"))? {
        disk += entry?.metadata()?.len();
    }
    println!(
        "| {what} | {:.2} s | {:.2} s | {} | {} | {} |",
        took.as_secs_f64(),
        cpu.as_secs_f64(),
        mib(memory.resident),
        mib(memory.peak),
        mib(disk)
    );
    Ok(())
}
