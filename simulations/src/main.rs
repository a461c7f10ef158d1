//! Replays a seed, or runs many. `scripts/simulate` calls this.

use std::process::ExitCode;

use anyhow::bail;
use clap::Parser;
use placement_simulations::campaign::{Subject, Summary};
use placement_simulations::mutant::Mutant;
use placement_simulations::report::Report;
use placement_simulations::seed::Seed;
use placement_simulations::trace::PacketDigest;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// Runs simulated clusters: one seed is one history, to the byte. Ends with an error if a seed
/// fails, or if a mutant is not caught.
#[derive(Debug, Parser)]
struct Arguments {
    /// The seed to run.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds to run, from `--seed` on.
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// A bug to put in: a seed must catch it, by the complaint that belongs to it. `--mutant list`
    /// names them.
    #[arg(long)]
    mutant: Option<String>,
    /// Runs what shall catch the mutant without the mutant: nothing may be wrong.
    #[arg(long, requires = "mutant")]
    control: bool,
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
    if arguments.mutant.as_deref() == Some("list") {
        for mutant in Mutant::ALL {
            println!("{}", mutant.name());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let subject = subject(&arguments)?;
    if arguments.count == 0 {
        bail!("--count 0 would prove nothing");
    }
    log_to_stderr(&arguments)?;
    let mut summary = Summary::new(subject);
    for seed in arguments.seed..arguments.seed.saturating_add(arguments.count) {
        summary.add(&simulate(&arguments, Seed(seed), subject));
    }
    print!("{summary}");
    Ok(match summary.is_well() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn subject(arguments: &Arguments) -> anyhow::Result<Subject> {
    let Some(name) = &arguments.mutant else {
        return Ok(Subject::Product);
    };
    match Mutant::named(name) {
        Some(mutant) if arguments.control => Ok(Subject::Control(mutant)),
        Some(mutant) => Ok(Subject::Mutant(mutant)),
        None => bail!("there is no mutant {name:?}; --mutant list names them"),
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

fn simulate(arguments: &Arguments, seed: Seed, subject: Subject) -> Report {
    let (parameters, faults) = subject.course(seed);
    if arguments.count == 1 {
        println!("{parameters:#?}");
    }
    if arguments.faults {
        for planned in faults {
            println!(
                "{:?} for {:?}: {:?}",
                planned.begins, planned.lasts, planned.fault
            );
        }
    }
    let began = std::time::Instant::now();
    let report = subject.run(seed);
    if arguments.history {
        print!("{}", report.history.text());
    }
    let took = began.elapsed();
    println!(
        "seed {}: history {:032x}, {} packets {:032x}, {took:.1?}\n    {:?}\n    {:?}",
        seed.0,
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
