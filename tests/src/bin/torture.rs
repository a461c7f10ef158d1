//! Attacks, overload and faults for a cluster on this machine; `scripts/torture` builds everything
//! and then calls this.

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use placement_tests::cluster::{COUNTED_ONLY, Cluster};
use placement_tests::exit_code;
use placement_tests::histories::{Round, Summary};
use placement_tests::torture::{LATENCY_MAX, Load, MEMORY_MAX, OVERLOADED_LINK, hostile, overload};
use rustix::process::{Resource, getrlimit, setrlimit};

/// Starts a cluster of three on this machine and attacks it, while other clients work on. Prints
/// what these saw, and whether the bars are met. The attackers run on the same processors.
///
/// With --minutes processes are killed, stopped and cut off, lose their power and are replaced,
/// while clients use the whole API; each answer must follow from the log that the nodes kept.
#[derive(Parser)]
#[command(name = "scripts/torture")]
struct Command {
    /// Hostile requests and slow clients of every kind, one after the other.
    #[arg(long)]
    hostile: bool,

    /// Ten times the clients with which the most is written, then over thin links ten times the
    /// writes per second; clients give up after two seconds.
    #[arg(long)]
    overload: bool,

    /// Seconds for each attack, and for each load.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,

    /// Random faults, for so many minutes: clusters of three and of five in turn, for a minute each
    /// or so. Exits with 1 at the first answer that is wrong, and says where everything is kept.
    #[arg(long, conflicts_with_all = ["hostile", "overload", "seconds"])]
    minutes: Option<f64>,

    /// The first seed: what clients ask and which faults come follows from it, the results do not.
    /// One that no one had unless it is given.
    #[arg(long, requires = "minutes")]
    seed: Option<u64>,
}

/// How long faults go on in one cluster.
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
    // Attackers need as many descriptors as there are.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    // What is looked at is how a node bears it, not whom it turns away first.
    let config = format!("[log]\nlevel = \"warn,placement::access=off\"\n{COUNTED_ONLY}");
    let config = config.as_str();
    if command.hostile || all {
        let mut cluster = Cluster::start_with(3, config).await?;
        hostile(&mut cluster, each, |outcome| {
            let well = outcome.harm().next().is_none()
                && outcome.seen.worst() <= LATENCY_MAX
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
    Ok(match met {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// One cluster after the other, for so long.
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
    match met {
        true => "[pass]",
        false => "[miss]",
    }
}
