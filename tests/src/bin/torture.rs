//! Attacks, overload and faults for a cluster on this machine. `scripts/torture` builds everything
//! and then calls this.

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use placement_tests::cluster::Cluster;
use placement_tests::exit_code;
use placement_tests::histories::{Round, Summary};
use placement_tests::torture::{LATENCY_MAX, Load, MEMORY_MAX, OVERLOADED_LINK, hostile, overload};
use rustix::process::{Resource, getrlimit, setrlimit};

/// Starts a cluster of three on this machine and attacks it while uninvolved clients continue to
/// work. Prints the latencies and failures of these clients, and whether they stay within the
/// limits. The attackers run on the same processors.
///
/// With --minutes, nodes are killed, paused, cut off from the network, lose power and are replaced
/// while clients use the whole API. Each answer must be consistent with the log that the nodes
/// archived.
#[derive(Parser)]
#[command(name = "scripts/torture")]
struct Command {
    /// Run only the attacks: hostile requests and slow clients of every kind, one after the other.
    #[arg(long)]
    hostile: bool,

    /// Run only the overload. First, ten times as many clients as give the highest write rate.
    /// Then, in a cluster with low-bandwidth links, ten times the highest write rate of that
    /// cluster. Clients time out after two seconds.
    #[arg(long)]
    overload: bool,

    /// Duration of each attack and each load, in seconds.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,

    /// Inject random faults for this many minutes in total. Every minute or so, a new cluster of
    /// three or five nodes replaces the previous one. At the first wrong answer, keep the data
    /// directories, logs and history, print where they are, and exit with 1.
    #[arg(long, conflicts_with_all = ["hostile", "overload", "seconds"])]
    minutes: Option<f64>,

    /// Seed of the first cluster; each further cluster uses the next number. Default: the current
    /// time. A seed determines requests and faults, but not the scheduling, so a repeated run can
    /// have another history.
    #[arg(long, requires = "minutes")]
    seed: Option<u64>,
}

/// Duration of the faults in one cluster.
const FAULT_PHASE: Duration = Duration::from_secs(45);

#[tokio::main]
async fn main() -> ExitCode {
    exit_code(run(Command::parse()).await)
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    if let Some(minutes) = command.minutes {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let seed = command.seed.unwrap_or(now.as_secs());
        return rounds_of_faults(Duration::try_from_secs_f64(60.0 * minutes)?, seed).await;
    }
    let each = Duration::try_from_secs_f64(command.seconds)?;
    let all = !command.hostile && !command.overload;
    let mut met = true;
    // The attackers need as many descriptors as the limit allows.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    let config = "[log]\nlevel = \"warn,placement::access=off\"\n";
    if command.hostile || all {
        let mut cluster = Cluster::start_with_optional_tls(3, config).await?;
        hostile(&mut cluster, each, |outcome| {
            let well = outcome.harm().next().is_none()
                && outcome.seen.max_latency() <= LATENCY_MAX
                && outcome.memory <= MEMORY_MAX
                && outcome.answers.all_answered()
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
    Ok(if met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs one cluster after the other until the time limit is reached.
async fn rounds_of_faults(long: Duration, first: u64) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let mut summary = Summary::default();
    for seed in first.. {
        let left = long.saturating_sub(begun.elapsed());
        if left.is_zero() {
            break;
        }
        let round = Round {
            seed,
            nodes: if seed % 2 == 0 { 5 } else { 3 },
            encrypted: seed % 4 < 2,
            script: Vec::new(),
            fault_phase: FAULT_PHASE.min(left),
        };
        let course = round.run(|line| println!("{line}")).await?;
        summary.add(&course);
        let wrong = &course.verdict.violations;
        let well = wrong.is_empty();
        let faults: usize = course.faults.values().sum();
        let (passed, requests) = (verdict(well), course.history.events.len());
        println!("{passed} seed {seed}: {requests} requests, {faults} faults");
        if !well {
            println!("{}", wrong.join("\n"));
            let kept = course.kept.unwrap_or_default();
            println!(
                "seed {seed}; data directories, logs and history are kept in {}\n{summary}",
                kept.display()
            );
            return Ok(ExitCode::FAILURE);
        }
    }
    println!("{summary}");
    Ok(ExitCode::SUCCESS)
}

fn verdict(met: bool) -> &'static str {
    if met { "[pass]" } else { "[miss]" }
}
