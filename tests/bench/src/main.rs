//! Measures placementd on this machine. `scripts/bench` installs and builds the requirements and
//! then calls this.

mod axum_server;
mod bars;
mod clouds;
mod contention;
mod cores;
mod etcd;
mod events;
mod explain;
mod failover;
mod json_writer;
mod learners;
mod leases;
mod load;
mod process_group;
mod regions;
mod rows;
mod security;
mod sites;
mod start;

mod upstream;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use placement_tests::cluster::Cluster;
use placement_tests::exit_code;

/// Starts placementd on this machine and measures it. Keep the machine otherwise idle.
#[derive(Parser)]
#[command(name = "scripts/bench")]
struct Command {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand)]
enum Part {
    Compare(rows::Options),
    Security(security::Options),
    Regions(regions::Options),
    Learners(learners::Options),
    #[command(hide = true)]
    Bare(axum_server::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    exit_code(run(Command::parse()).await.map(|()| ExitCode::SUCCESS))
}

async fn run(command: Command) -> anyhow::Result<()> {
    if !matches!(command.part, Part::Bare(_)) {
        let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().unwrap_or("?");
        println!("{cores} cores, load {load} before the start\n");
        cores::move_to(&cores::of_services()?)?;
    }
    match &command.part {
        Part::Compare(options) => rows::run(options).await,
        Part::Security(options) => security::run(options).await,
        Part::Regions(options) => regions::run(options).await,
        Part::Learners(options) => learners::run(options).await,
        Part::Bare(options) => axum_server::serve(options).await,
    }
}

/// API URLs of these nodes.
fn urls(cluster: &Cluster, ids: impl IntoIterator<Item = u64>) -> Vec<String> {
    let clients = ids.into_iter().map(|id| cluster.client_of(id));
    clients
        .map(|client| client.endpoints()[0].to_string())
        .collect()
}

/// Process ids of these nodes.
fn pids(cluster: &mut Cluster, ids: impl IntoIterator<Item = u64>) -> Vec<u32> {
    ids.into_iter()
        .map(|id| cluster.process(id).pid())
        .collect()
}

/// Sums a metric of a node over these peers.
async fn sum_of_peers(
    cluster: &Cluster,
    node: u64,
    metric: &str,
    peers: impl IntoIterator<Item = u64>,
) -> anyhow::Result<f64> {
    let text = cluster.metrics(node).await;
    let samples = peers.into_iter().map(|peer| {
        let sample = value_of(&text, &format!("{metric}{{peer=\"{peer}\"}}"))?;
        anyhow::Ok(sample.unwrap_or(0.0))
    });
    samples.sum()
}

/// Value of a metric; `name` includes the labels.
fn value_of(metrics: &str, name: &str) -> anyhow::Result<Option<f64>> {
    let mut lines = metrics.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(value.map(str::parse).transpose()?)
}

/// Replaces the text between the two marker lines of a document that name this command.
fn write_into(file: &Path, command: &str, text: &str) -> anyhow::Result<()> {
    let begin = format!("<!-- written by {command} -->");
    let end = format!("<!-- end of {command} -->");
    let page = std::fs::read_to_string(file)?;
    let around = page
        .split_once(&begin)
        .and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let (before, after) =
        around.with_context(|| format!("{} lacks {begin} or {end}", file.display()))?;
    Ok(std::fs::write(
        file,
        format!("{before}{begin}\n\n{text}\n{end}{after}"),
    )?)
}

/// Draws lines over logarithmic axes with gnuplot, from named series of points.
fn plot(
    file: &Path,
    title: &str,
    x: &str,
    y: &str,
    points: &[(String, f64, f64)],
) -> anyhow::Result<()> {
    let mut script = format!(
        "set title \"{title}\"\nset xlabel \"{x}\"\nset ylabel \"{y}\"\nset logscale xy\nset grid\n\
         set key outside right top\nset terminal svg size 720,440 background 'white'\nset output '{}'\n",
        file.display()
    );
    let mut lines: BTreeMap<&str, String> = BTreeMap::new();
    for (name, x, y) in points {
        let _ = writeln!(lines.entry(name).or_default(), "{x} {y}");
    }
    for (nth, points) in lines.values().enumerate() {
        let _ = writeln!(script, "$line{nth} << end\n{points}end");
    }
    let drawn = lines
        .keys()
        .enumerate()
        .map(|(nth, name)| format!("$line{nth} with linespoints pointtype 7 title '{name}'"));
    let _ = writeln!(script, "plot {}", drawn.collect::<Vec<_>>().join(", "));
    let commands = tempfile::NamedTempFile::new()?;
    std::fs::write(&commands, script)?;
    process_group::run(std::process::Command::new("gnuplot").arg(commands.path()))
        .context("cannot run gnuplot (Debian package gnuplot-nox)")
}

fn ms(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.3} ms"),
        v => format!("{v:.1} ms"),
    }
}

fn progress(what: &str) {
    eprintln!("    {what}");
}
