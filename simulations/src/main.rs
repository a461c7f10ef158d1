//! Replays a seed, or runs many. `scripts/simulate` calls this.

use std::process::ExitCode;

use anyhow::bail;
use clap::Parser;
use placement_simulations::faults::plan;
use placement_simulations::mutant::Mutant;
use placement_simulations::parameters::Parameters;
use placement_simulations::run::{Report, run};
use placement_simulations::seed::Seed;
use placement_simulations::trace::PacketDigest;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// Runs simulated clusters: one seed is one history, to the byte.
#[derive(Debug, Parser)]
struct Arguments {
    /// The seed to run.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds to run, from `--seed` on.
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// A bug to put in; the run is then expected to fail. `--mutant list` names them.
    #[arg(long)]
    mutant: Option<String>,
    /// Prints the whole history.
    #[arg(long)]
    history: bool,
    /// Prints the faults with their times.
    #[arg(long)]
    faults: bool,
    /// What the nodes log, to standard error, as in RUST_LOG; `off` for nothing.
    #[arg(long, default_value = "off")]
    log: String,
    /// Digests every network packet (slower), so that two runs can be compared.
    #[arg(long)]
    trace: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let Some(mutant) = mutant(arguments.mutant.as_deref())? else {
        return Ok(ExitCode::SUCCESS);
    };
    log_to_stderr(&arguments)?;
    for seed in arguments.seed..arguments.seed.saturating_add(arguments.count) {
        let report = simulate(&arguments, seed, mutant);
        if !report.violations.is_empty() {
            println!("{}", report.replay(mutant));
            return Ok(ExitCode::FAILURE);
        }
    }
    if let Some(mutant) = mutant {
        println!("{} was not caught", mutant.name());
    }
    Ok(ExitCode::SUCCESS)
}

/// The mutant asked for; `None` if only the list of them was.
fn mutant(name: Option<&str>) -> anyhow::Result<Option<Option<Mutant>>> {
    match name {
        None => Ok(Some(None)),
        Some("list") => {
            for mutant in Mutant::ALL {
                println!("{}", mutant.name());
            }
            Ok(None)
        }
        Some(name) => match Mutant::named(name) {
            Some(mutant) => Ok(Some(Some(mutant))),
            None => bail!("there is no mutant {name:?}; --mutant list names them"),
        },
    }
}

fn log_to_stderr(arguments: &Arguments) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&arguments.log)?;
    let log = fmt::layer()
        .without_time()
        .with_writer(std::io::stderr)
        .with_filter(filter);
    let packets = arguments
        .trace
        .then(|| PacketDigest.with_filter(EnvFilter::new("turmoil=trace")));
    tracing_subscriber::registry()
        .with(log)
        .with(packets)
        .init();
    Ok(())
}

fn simulate(arguments: &Arguments, seed: u64, mutant: Option<Mutant>) -> Report {
    let parameters = Parameters::from_seed(Seed(seed));
    if arguments.count == 1 {
        println!("{parameters:#?}");
    }
    if arguments.faults {
        for planned in plan(&parameters) {
            println!(
                "{:?} for {:?}: {:?}",
                planned.begins, planned.lasts, planned.fault
            );
        }
    }
    let began = std::time::Instant::now();
    let report = run(&parameters, mutant);
    if arguments.history {
        print!("{}", report.history.text());
    }
    let took = began.elapsed();
    println!(
        "seed {seed}: history {:032x}, {} packets {:032x}, {took:.1?}\n    {:?}\n    {:?}",
        report.history.digest(),
        report.trace.0,
        report.trace.1,
        report.counts,
        report.kinds
    );
    for violation in report.violations.iter().take(20) {
        println!("  VIOLATION {violation}");
    }
    if report.violations.len() > 20 {
        println!("  and {} more", report.violations.len() - 20);
    }
    report
}
