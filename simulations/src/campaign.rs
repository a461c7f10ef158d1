//! Runs many seeds and summarizes them. A failing seed does not stop the campaign.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use placement_base::coverage::RarePath;
use placement_machine::coverage::Counted;
use xxhash_rust::xxh3::xxh3_64;

use crate::fault_subset::FaultSubset;
use crate::faults::{Planned, drawn};
use crate::mutant::Mutant;
use crate::parameters::Parameters;
use crate::report::Report;
use crate::run::run_with;
use crate::seed::Seed;

/// Time limit of a run, which takes some seconds.
pub const RUN_MAX: Duration = Duration::from_secs(300);

/// The program that a campaign runs with each seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestedProgram {
    /// The product, in a run drawn from the seed.
    Product,
    /// A bug, in a run that should expose it.
    Mutant(Mutant),
    /// The product, in the run for that bug: no invariant may fail.
    Control(Mutant),
}

impl TestedProgram {
    /// Parameters and faults of the run.
    pub fn course(self, seed: Seed) -> (Parameters, Vec<Planned>) {
        match self {
            TestedProgram::Product => drawn(seed),
            TestedProgram::Mutant(mutant) | TestedProgram::Control(mutant) => mutant.course(seed),
        }
    }

    /// Runs one seed on a thread of its own, as the simulated world is bound to its thread.
    ///
    /// # Panics
    /// If the check of the history panics. Panics of the run itself are reported as violations.
    pub fn run(self, seed: Seed) -> Report {
        self.run_less(seed, &FaultSubset::default())
    }

    /// Runs a seed without the faults that `less` removes.
    ///
    /// # Panics
    /// As [`TestedProgram::run`].
    pub fn run_less(self, seed: Seed, less: &FaultSubset) -> Report {
        let mutant = match self {
            TestedProgram::Mutant(mutant) => Some(mutant),
            TestedProgram::Product | TestedProgram::Control(_) => None,
        };
        let (parameters, faults) = self.course(seed);
        let faults = less.select(faults);
        std::thread::spawn(move || run_with(&parameters, mutant, faults))
            .join()
            .expect("a run reports its panics")
    }

    /// The command line that replays this seed.
    pub fn replay(self, seed: Seed) -> String {
        let more = match self {
            TestedProgram::Product => String::new(),
            TestedProgram::Mutant(mutant) => format!(" --mutant {}", mutant.name()),
            TestedProgram::Control(mutant) => format!(" --mutant {} --control", mutant.name()),
        };
        format!("scripts/simulate run --seed {}{more}", seed.0)
    }
}

/// Results of many seeds.
#[derive(Debug)]
pub struct Summary {
    subject: TestedProgram,
    /// Number of seeds run.
    pub seeds: usize,
    /// For each failed seed: its replay command, the number of violations and the first violation.
    pub failed: Vec<(String, usize, String)>,
    /// Seeds that caught the mutant by the invariant that it breaks.
    pub caught: Vec<u64>,
    /// Totals over all runs.
    pub totals: Totals,
    /// Recovery time of each run as a percentage of its limit, sorted.
    recovery_percents: Vec<u128>,
}

/// Totals over many runs.
#[derive(Debug, Default)]
pub struct Totals {
    /// Simulated time, summed over all runs.
    pub simulated: Duration,
    /// Log entries that hold commands.
    pub commits: usize,
    /// Commands applied, summed over all nodes. The state after each is compared with the other
    /// nodes'.
    pub applied: usize,
    /// Number of leaders elected.
    pub elections: usize,
    /// Snapshots sent to nodes.
    pub snapshots: usize,
    /// Number of faults by kind.
    pub faults: BTreeMap<&'static str, usize>,
    /// Executions of the product's rare paths.
    pub rare: Counted,
}

impl Totals {
    fn add(&mut self, report: &Report) {
        self.simulated += report.counts.simulated;
        self.commits += report.counts.commits;
        self.applied += report.counts.applied;
        self.elections += report.counts.elections;
        self.snapshots += report.counts.snapshots;
        for fault in &report.faults {
            *self.faults.entry(fault.fault.kind()).or_default() += 1;
        }
        for (path, times) in &report.rare {
            *self.rare.entry(*path).or_default() += times;
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.simulated.as_secs_f64() / 3600.0;
        writeln!(
            f,
            "{hours:.2} hours simulated: {} commands committed, {} states compared, {} leaders, {} snapshots sent",
            self.commits, self.applied, self.elections, self.snapshots
        )?;
        writeln!(f, "faults:")?;
        for (kind, times) in &self.faults {
            writeln!(f, "{times:>9} {kind}")?;
        }
        writeln!(f, "rare paths of the product:")?;
        for path in RarePath::ALL {
            let times = self.rare.get(path).copied().unwrap_or_default();
            writeln!(f, "{times:>9} {}", path.name())?;
        }
        Ok(())
    }
}

impl Summary {
    /// A summary without any runs.
    pub fn new(subject: TestedProgram) -> Self {
        Self {
            subject,
            seeds: 0,
            failed: Vec::new(),
            caught: Vec::new(),
            totals: Totals::default(),
            recovery_percents: Vec::new(),
        }
    }

    /// Adds the report of one run.
    pub fn add(&mut self, report: &Report) {
        self.seeds += 1;
        self.totals.add(report);
        let seed = report.parameters.seed;
        match report.violations.first() {
            Some(first) => {
                let replay = self.subject.replay(seed);
                let count = report.violations.len();
                self.failed.push((replay, count, first.clone()));
            }
            None => {
                let percent = report.counts.recovery_percent();
                let place = self.recovery_percents.partition_point(|one| *one < percent);
                self.recovery_percents.insert(place, percent);
            }
        }
        if let TestedProgram::Mutant(mutant) = self.subject
            && mutant.is_caught_by(report)
        {
            self.caught.push(seed.0);
        }
    }

    /// Adds a run that does not end.
    pub(crate) fn add_endless(&mut self, seed: Seed) {
        self.seeds += 1;
        let reason = format!("the run has not ended within {} s", RUN_MAX.as_secs());
        self.failed.push((self.subject.replay(seed), 1, reason));
    }

    /// Whether the campaign succeeds: no seed failed, or the mutant was caught.
    pub fn succeeded(&self) -> bool {
        match self.subject {
            TestedProgram::Product | TestedProgram::Control(_) => self.failed.is_empty(),
            TestedProgram::Mutant(_) => !self.caught.is_empty(),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seeds = self.seeds;
        if let TestedProgram::Mutant(mutant) = self.subject {
            let (name, words) = (mutant.name(), mutant.complaint());
            match self.caught.first() {
                None => writeln!(
                    f,
                    "{name} was not caught by any of {seeds} seeds ({words:?})"
                )?,
                Some(first) => writeln!(
                    f,
                    "{name} was caught by {} of {seeds} seeds, first by {first} ({words:?})",
                    self.caught.len()
                )?,
            }
            return Ok(());
        }
        writeln!(f, "{seeds} seeds run, {} failed", self.failed.len())?;
        for (replay, count, first) in &self.failed {
            writeln!(
                f,
                "FAILED {replay}\n    {count} violations, the first: {first}"
            )?;
        }
        if let (Some(middle), Some(most)) = (
            self.recovery_percents.get(self.recovery_percents.len() / 2),
            self.recovery_percents.last(),
        ) {
            writeln!(
                f,
                "recovery after the fault phase took {middle} % of its time limit at the median, \
                 {most} % at most"
            )?;
        }
        Ok(())
    }
}

/// Start of a range of seeds that never ran before, derived from `name` (a commit). It is far above
/// the seeds of other campaigns, which count from 1.
pub fn fresh(name: &str) -> Seed {
    Seed((1 << 32) + xxh3_64(name.as_bytes()) % (1 << 32))
}
