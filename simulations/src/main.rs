//! Runs simulated clusters and prints their histories. `scripts/simulate` calls it.

use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::{Args, Parser, Subcommand};
use placement_raft_store::Rules;
use placement_simulations::campaign::{Summary, TestedProgram};
use placement_simulations::explain::explain;
use placement_simulations::fault_subset::FaultSubset;
use placement_simulations::mutant::Mutant;
use placement_simulations::replay;
use placement_simulations::report::Report;
use placement_simulations::seed::Seed;
use placement_simulations::swarm::Swarm;
use placement_simulations::trace::PacketDigest;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// Interval of progress reports.
const PAUSE: Duration = Duration::from_secs(2);

/// Runs simulated clusters. One seed gives one history, byte for byte. Exits with an error if a
/// seed fails, or if a mutant is not caught.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Run one seed and print its parameters and results
    Run(Run),
    /// Run many seeds on several processors and print a summary
    Swarm(Many),
    /// Print the story of one seed: faults, leaders, and requests without an answer
    Explain(One),
    /// Find the fewest faults with which a failing seed still fails
    Shrink(Shrunk),
    /// Replay the log of a real node against the naive model
    ///
    /// Both execute each command from a common state, and must give the same outcome and the same
    /// rows. Prints the first difference and exits with 1.
    Replay {
        /// Data directory of a stopped node, or a directory filled by `[backup]`
        directory: PathBuf,
    },
    /// List the bugs that can be injected, and the invariants that catch them
    Mutants,
}

#[derive(Debug, Args)]
struct One {
    /// Seed of the run
    #[arg(long)]
    seed: u64,
    #[command(flatten)]
    bug: Bug,
    #[command(flatten)]
    less: FaultSubset,
}

#[derive(Debug, Args)]
struct Bug {
    /// Inject this bug. The run must then violate the invariant that `mutants` lists for the bug
    #[arg(long)]
    mutant: Option<String>,
    /// Run the mutant's scenario without the mutant; no invariant may fail
    #[arg(long, requires = "mutant")]
    control: bool,
}

#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    one: One,
    /// Print the whole history
    #[arg(long)]
    history: bool,
    /// Log filter of the nodes, in the syntax of RUST_LOG. The log goes to standard error
    #[arg(long, default_value = "off")]
    log: String,
    /// Compute a digest over all network packets (slower), to compare runs
    #[arg(long)]
    trace: bool,
}

#[derive(Debug, Args)]
struct Many {
    /// Range of seeds; the end is excluded
    #[arg(long, value_name = "A..B", value_parser = seeds, conflicts_with = "minutes",
          required_unless_present = "minutes")]
    seeds: Option<Range<u64>>,
    /// Run for this many minutes, with seeds derived from the current time
    #[arg(long)]
    minutes: Option<u64>,
    /// Run only seeds whose clusters span regions (one in six)
    #[arg(long)]
    in_regions: bool,
    /// Number of concurrent runs; by default the number of processors
    #[arg(long)]
    jobs: Option<usize>,
    #[command(flatten)]
    bug: Bug,
}

#[derive(Debug, Args)]
struct Shrunk {
    /// Number of the failing seed
    #[arg(long)]
    seed: u64,
    #[command(flatten)]
    bug: Bug,
}

fn main() -> ExitCode {
    match run(Arguments::parse().action) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // The causes are printed without a backtrace, which does not help the user.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(action: Action) -> anyhow::Result<bool> {
    Ok(match action {
        Action::Run(run) => run.carry_out()?,
        Action::Swarm(many) => many.carry_out()?,
        Action::Explain(one) => one.explain()?,
        Action::Shrink(shrunk) => shrunk.carry_out()?,
        Action::Replay { directory } => {
            let mut last = Instant::now();
            let counts = replay::replay(&directory, &Rules, |index| {
                if last.elapsed() >= PAUSE {
                    last = Instant::now();
                    eprintln!("    ... entry {index}");
                }
            })?;
            println!("no difference: {counts}");
            true
        }
        Action::Mutants => {
            for mutant in Mutant::ALL {
                let (name, promise) = (mutant.name(), mutant.complaint());
                println!("{name}: {} Caught by: {promise}.", mutant.description());
            }
            true
        }
    })
}

impl Bug {
    fn subject(&self) -> anyhow::Result<TestedProgram> {
        let Some(name) = &self.mutant else {
            return Ok(TestedProgram::Product);
        };
        match Mutant::named(name) {
            Some(mutant) if self.control => Ok(TestedProgram::Control(mutant)),
            Some(mutant) => Ok(TestedProgram::Mutant(mutant)),
            None => bail!("unknown mutant {name:?}; `scripts/simulate mutants` lists them"),
        }
    }
}

impl One {
    fn report(&self) -> anyhow::Result<Report> {
        let subject = self.bug.subject()?;
        Ok(subject.run_less(Seed(self.seed), &self.less))
    }

    fn explain(&self) -> anyhow::Result<bool> {
        let (_, faults) = self.bug.subject()?.course(Seed(self.seed));
        println!("Planned faults, times since the start of the fault phase:");
        for (number, planned) in faults.iter().enumerate() {
            let left_out = if self.less.keeps(number) {
                ""
            } else {
                " (left out)"
            };
            println!("{number:>5}: {planned}{left_out}");
        }
        print!("\n{}", explain(&self.report()?));
        Ok(true)
    }
}

impl Run {
    fn carry_out(&self) -> anyhow::Result<bool> {
        self.log_to_stderr()?;
        let began = Instant::now();
        let report = self.one.report()?;
        let took = began.elapsed();
        println!("{:#?}", report.parameters);
        if self.history {
            print!("{}", report.history.text());
        }
        println!(
            "seed {}: history {:032x}, {} packets {:032x}, {took:.1?}\n    {:?}\n    {:?}",
            self.one.seed,
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
        Ok(match self.one.bug.subject()? {
            TestedProgram::Mutant(mutant) => mutant.is_caught_by(&report),
            TestedProgram::Product | TestedProgram::Control(_) => report.violations.is_empty(),
        })
    }

    fn log_to_stderr(&self) -> anyhow::Result<()> {
        let filter = EnvFilter::try_new(&self.log)?;
        let log = fmt::layer()
            .without_time()
            .with_writer(std::io::stderr)
            .with_filter(filter);
        let packets = self
            .trace
            .then(|| PacketDigest.with_filter(EnvFilter::new("turmoil=trace")));
        tracing_subscriber::registry()
            .with(log)
            .with(packets)
            .init();
        Ok(())
    }
}

impl Many {
    fn carry_out(&self) -> anyhow::Result<bool> {
        let subject = self.bug.subject()?;
        let began = Instant::now();
        let until = self
            .minutes
            .map(|minutes| began + Duration::from_secs(60 * minutes));
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        let swarm = Swarm {
            subject,
            seeds: self.seeds.clone().unwrap_or_else(fresh_seeds),
            in_regions: self.in_regions,
            until,
            jobs: self.jobs.unwrap_or(processors),
        };
        println!("seeds from {}, {} jobs", swarm.seeds.start, swarm.jobs);
        let mut last = Instant::now();
        let summary = swarm.run(PAUSE, |report, summary| {
            if let Some(report) = &report
                && let Some(first) = report.violations.first()
                && subject == TestedProgram::Product
            {
                println!(
                    "FAILED {}\n    {first}",
                    subject.replay(report.parameters.seed)
                );
            }
            if last.elapsed() >= PAUSE {
                last = Instant::now();
                eprintln!("    ... {}", progress(summary, began, until));
            }
        });
        let took = began.elapsed();
        print!("{summary}");
        if subject == TestedProgram::Product {
            let speed = summary.totals.simulated.as_secs_f64() / took.as_secs_f64();
            print!("{}", summary.totals);
            println!(
                "took {took:.0?}: {speed:.0} simulated seconds per second, {:.0} per job",
                speed / swarm.jobs as f64
            );
        }
        Ok(summary.succeeded())
    }
}

fn progress(summary: &Summary, began: Instant, until: Option<Instant>) -> String {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let left = left.map_or_else(String::new, |left| format!(", {} s left", left.as_secs()));
    format!(
        "{} seeds, {} failed, {:.1} minutes simulated in {} s{left}",
        summary.seeds,
        summary.failed.len(),
        summary.totals.simulated.as_secs_f64() / 60.0,
        began.elapsed().as_secs(),
    )
}

/// A range of seeds that most likely never ran before.
fn fresh_seeds() -> Range<u64> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let first = now.map_or(0, |now| now.as_secs()) * 1_000;
    first..u64::MAX
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let parsed = text.split_once("..").and_then(|(first, end)| {
        let (first, end) = (first.parse().ok()?, end.parse().ok()?);
        (first < end).then_some(first..end)
    });
    parsed.ok_or_else(|| "write a range of seeds as 1..101 (the end is excluded)".to_owned())
}

impl Shrunk {
    fn carry_out(&self) -> anyhow::Result<bool> {
        let subject = self.bug.subject()?;
        let seed = Seed(self.seed);
        let report = subject.run(seed);
        let Some(first) = report.violations.first() else {
            println!("no violation in {}", subject.replay(seed));
            return Ok(false);
        };
        let name = name_of(first).to_owned();
        println!("searching for the fewest faults with this violation: {name}");
        let (_, faults) = subject.course(seed);
        let mut runs = 0;
        let least = FaultSubset::search(faults.len(), |less| {
            runs += 1;
            let report = subject.run_less(seed, less);
            let fails = report.violations.iter().any(|one| name_of(one) == name);
            eprintln!(
                "    ... {}{less}",
                if fails { "fails: " } else { "holds: " }
            );
            fails
        });
        println!("after {runs} runs:\n{}{least}", subject.replay(seed));
        Ok(true)
    }
}

/// The violation's invariant, without the details of one run.
fn name_of(violation: &str) -> &str {
    let end = violation.find(|c: char| c == ':' || c == '\n' || c.is_ascii_digit());
    &violation[..end.unwrap_or(violation.len())]
}
