//! Measures a cluster on this machine; `scripts/bench` builds everything and then calls this.

mod candidates;
mod compare;
mod estates;
mod learners;
mod lines;
mod process_group;
mod regions;
mod security;
mod upstream;
mod work;

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Parser, Subcommand};
use placement_client::Consistency;
use placement_tests::cluster::{COUNTED_ONLY, Cluster};
use placement_tests::exit_code;

const PROVIDERS: u128 = 64;

/// Starts clusters of real processes on this machine and measures, for each size: durable
/// `PUT /allocations` per second beside the disk's own syncs, and reads on a follower. The load
/// comes from this process, which takes its share of the same cores.
#[derive(Parser)]
#[command(name = "scripts/bench", args_conflicts_with_subcommands = true)]
struct Command {
    #[command(subcommand)]
    part: Option<Part>,

    /// Seconds per figure.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,

    /// How many clients write at once; several separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64")]
    clients: Vec<usize>,

    /// Sizes of cluster; several separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "3,1")]
    nodes: Vec<u64>,
}

#[derive(Subcommand)]
enum Part {
    /// The allocation candidates instead.
    Candidates(candidates::Options),
    /// Its peers beside it, in the same run, and the bars that must be met.
    Compare(compare::Options),
    /// What TLS and Keystone cost, beside the same without.
    Security(security::Options),
    /// What distance costs: three regions, and a site of a learner, so far apart.
    Regions(regions::Options),
    /// What learners cost the leader.
    Learners(learners::Options),
    #[command(hide = true)]
    Bare(compare::BareOptions),
}

#[tokio::main]
async fn main() -> ExitCode {
    exit_code(run(Command::parse()).await.map(|()| ExitCode::SUCCESS))
}

async fn run(command: Command) -> anyhow::Result<()> {
    match &command.part {
        Some(Part::Candidates(options)) => return candidates::run(options).await,
        Some(Part::Compare(options)) => return compare::run(options).await,
        Some(Part::Security(options)) => return security::run(options).await,
        Some(Part::Regions(options)) => return regions::run(options).await,
        Some(Part::Learners(options)) => return learners::run(options).await,
        Some(Part::Bare(options)) => return compare::serve_bare(options).await,
        None => {}
    }
    let duration = Duration::try_from_secs_f64(command.seconds)
        .context("--seconds is a number of seconds, such as 5")?;
    println!("{}", machine());
    for &nodes in &command.nodes {
        measure(nodes, &command.clients, duration).await?;
    }
    Ok(())
}

async fn measure(nodes: u64, clients: &[usize], duration: Duration) -> anyhow::Result<()> {
    progress(&format!("starting {nodes} nodes"));
    let config = format!("[log]\nlevel = \"warn\"\n{COUNTED_ONLY}");
    let cluster = Cluster::start_with(nodes, &config).await?;
    let providers = estates::boundless(&cluster.client(), PROVIDERS).await?;

    println!(
        "\n## {nodes} node(s): PUT /allocations, each a new consumer, through all nodes in turn\n"
    );
    println!(
        "| clients | writes/s | p50 | p99 | errors | fdatasync/s beside it | writes per fdatasync |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    for &count in clients {
        let before = syncs_per_second(cluster.directory())?;
        progress(&format!("{count} clients write"));
        let measured = work::writes(&cluster.clients(), &providers, count, duration).await;
        let after = syncs_per_second(cluster.directory())?;
        let raw = (before + after) / 2.0;
        println!(
            "| {count} | {:.0} | {} | {} | {} | {raw:.0} ({before:.0} before, {after:.0} after) | {:.1} |",
            measured.per_second(),
            ms(measured.quantile(0.5)),
            ms(measured.quantile(0.99)),
            measured.errors,
            measured.per_second() / raw,
        );
    }

    let (id, who) = match cluster.followers().await?.first() {
        Some(&follower) => (follower, "a follower"),
        None => (1, "the only node"),
    };
    println!("\n## {nodes} node(s): GET /resource_providers/{{uuid}}/inventories on {who}\n");
    println!("| promise | clients | reads/s | p50 | p99 | errors |");
    println!("|---|---:|---:|---:|---:|---:|");
    for count in [1, 16] {
        for (name, promise) in [
            ("linearizable", Consistency::Linearizable),
            ("local", Consistency::Local),
        ] {
            progress(&format!("{count} clients read, {name}"));
            let client = [cluster.client_of(id).with_consistency(promise)];
            let measured = work::reads(&client, &providers, count, duration).await;
            println!(
                "| {name} | {count} | {:.0} | {} | {} | {} |",
                measured.per_second(),
                ms(measured.quantile(0.5)),
                ms(measured.quantile(0.99)),
                measured.errors
            );
        }
    }
    Ok(())
}

/// What the disk under the data directories can do alone: append 512 bytes, fdatasync, again.
fn syncs_per_second(directory: &Path) -> anyhow::Result<f64> {
    progress("the disk alone");
    let path = directory.join("fdatasync");
    let mut file = File::create(&path)?;
    let started = Instant::now();
    let mut count = 0;
    while started.elapsed() < Duration::from_secs(1) {
        file.write_all(&[7; 512])?;
        file.sync_data()?;
        count += 1;
    }
    let rate = f64::from(count) / started.elapsed().as_secs_f64();
    std::fs::remove_file(&path)?;
    Ok(rate)
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    format!("{cores} cores, load {load} before the start")
}

fn ms(latency: Duration) -> String {
    format!("{:.2} ms", latency.as_secs_f64() * 1000.0)
}

fn progress(what: &str) {
    eprintln!("    {what}");
}
