//! Bad days for a cluster on this machine; `scripts/torture` builds everything and then calls this.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use placement_tests::cluster::Cluster;
use placement_tests::torture::{LATENCY_MAX, Load, MEMORY_MAX, OVERLOADED_LINK, hostile, overload};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Starts a cluster of three on this machine and gives it bad days, while other clients work on. Prints
/// what these saw, and whether the bars are met. The attackers run on the same processors.
#[derive(Parser)]
#[command(name = "scripts/torture")]
struct Command {
    /// Hostile requests and slow clients of every kind, one after the other.
    #[arg(long)]
    hostile: bool,

    /// Ten times the clients with which the most is written, then over thin links ten times the writes per
    /// second; clients give up after two seconds.
    #[arg(long)]
    overload: bool,

    /// Seconds for each attack, and for each load.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let command = Command::parse();
    let each = Duration::try_from_secs_f64(command.seconds)?;
    let all = !command.hostile && !command.overload;
    let mut met = true;
    // Attackers need as many descriptors as there are.
    let limit = getrlimit(Resource::Nofile);
    let all_of_them = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, all_of_them)?;
    let config = "[log]\nlevel = \"warn,placement::access=off\"\n";
    if command.hostile || all {
        let mut cluster = Cluster::start_with(3, config).await?;
        hostile(&mut cluster, each, |outcome| {
            let well = outcome.seen.failed.is_empty()
                && outcome.seen.worst() <= LATENCY_MAX
                && outcome.memory <= MEMORY_MAX
                && outcome.told.all_answered()
                && !outcome.election;
            met &= well;
            println!("{} {outcome}", verdict(well));
        })
        .await?;
    }
    if command.overload || all {
        for load in [Load::Clients, Load::Rate] {
            let mut cluster = match load {
                Load::Clients => Cluster::start_with(3, config).await?,
                Load::Rate => Cluster::start_linked(3, config, OVERLOADED_LINK).await?,
            };
            let outcome = overload(&mut cluster, load, each).await?;
            let well = outcome.goodput >= 0.8 * outcome.peak
                && outcome.memory <= MEMORY_MAX
                && !outcome.election;
            met &= well;
            println!("{} {outcome}", verdict(well));
        }
    }
    Ok(match met {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn verdict(met: bool) -> &'static str {
    match met {
        true => "[pass]",
        false => "[miss]",
    }
}
