//! Many seeds: run to the end whatever fails, and summed up.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use placement_machine::coverage::Counted;
use placement_raft_store::coverage::RarePath;
use xxhash_rust::xxh3::xxh3_64;

use crate::faults::{Planned, drawn};
use crate::less::Less;
use crate::mutant::Mutant;
use crate::parameters::Parameters;
use crate::report::Report;
use crate::run::run_with;
use crate::seed::Seed;

/// What is run with each seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The product, in the run that is drawn from the seed.
    Product,
    /// A bug, in the course that shall bring it out.
    Mutant(Mutant),
    /// The product, in the course of that bug: nothing may be wrong.
    Control(Mutant),
}

impl Subject {
    /// What a run is made of, and what goes wrong in it.
    pub fn course(self, seed: Seed) -> (Parameters, Vec<Planned>) {
        match self {
            Subject::Product => drawn(seed),
            Subject::Mutant(mutant) | Subject::Control(mutant) => mutant.course(seed),
        }
    }

    /// One run, on a thread of its own, as the simulated world is bound to its thread.
    ///
    /// # Panics
    /// If the judgement does; a run reports its own panics.
    pub fn run(self, seed: Seed) -> Report {
        self.run_less(seed, &Less::default())
    }

    /// What is left of a run.
    ///
    /// # Panics
    /// As [`Subject::run`].
    pub fn run_less(self, seed: Seed, less: &Less) -> Report {
        let mutant = match self {
            Subject::Mutant(mutant) => Some(mutant),
            Subject::Product | Subject::Control(_) => None,
        };
        let (parameters, faults) = self.course(seed);
        let faults = less.of(faults);
        std::thread::spawn(move || run_with(&parameters, mutant, faults))
            .join()
            .expect("a run reports its panics")
    }

    /// The line that runs this seed again.
    pub fn replay(self, seed: Seed) -> String {
        let more = match self {
            Subject::Product => String::new(),
            Subject::Mutant(mutant) => format!(" --mutant {}", mutant.name()),
            Subject::Control(mutant) => format!(" --mutant {} --control", mutant.name()),
        };
        format!("scripts/simulate run --seed {}{more}", seed.0)
    }
}

/// What came of many seeds.
#[derive(Debug)]
pub struct Summary {
    subject: Subject,
    /// Seeds that were run.
    pub seeds: usize,
    /// The line that replays each failed seed, with how many complaints there were and the first.
    pub failed: Vec<(String, usize, String)>,
    /// Seeds that caught the mutant for the right reason.
    pub caught: Vec<u64>,
    /// What happened in all of them.
    pub totals: Totals,
    /// How much of the time that they might take the clusters took to recover, in percent, sorted.
    recovery_percents: Vec<u128>,
}

/// What happened in many runs.
#[derive(Debug, Default)]
pub struct Totals {
    /// Simulated time.
    pub simulated: Duration,
    /// Entries of the log that hold commands.
    pub commits: usize,
    /// Commands that were applied, on all nodes: so many states were held against the others'.
    pub applied: usize,
    /// Leaders that there were.
    pub elections: usize,
    /// Snapshots that nodes were sent.
    pub snapshots: usize,
    /// Faults, by kind.
    pub faults: BTreeMap<&'static str, usize>,
    /// Which rare paths of the product ran, and how often.
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
    /// Nothing yet.
    pub fn new(subject: Subject) -> Self {
        Self {
            subject,
            seeds: 0,
            failed: Vec::new(),
            caught: Vec::new(),
            totals: Totals::default(),
            recovery_percents: Vec::new(),
        }
    }

    /// Counts one run.
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
        if let Subject::Mutant(mutant) = self.subject
            && mutant.is_caught_by(report)
        {
            self.caught.push(seed.0);
        }
    }

    /// Whether all is as it should be: every seed holds, or the mutant was caught.
    pub fn is_well(&self) -> bool {
        match self.subject {
            Subject::Product | Subject::Control(_) => self.failed.is_empty(),
            Subject::Mutant(_) => !self.caught.is_empty(),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seeds = self.seeds;
        if let Subject::Mutant(mutant) = self.subject {
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
                "FAILED {replay}\n    {count} complaints, the first: {first}"
            )?;
        }
        if let (Some(middle), Some(most)) = (
            self.recovery_percents.get(self.recovery_percents.len() / 2),
            self.recovery_percents.last(),
        ) {
            writeln!(
                f,
                "recovery after the fault phase took {middle} % of what it may take at the median, \
                 {most} % at most"
            )?;
        }
        Ok(())
    }
}

/// The first of the seeds that were never run before: chosen by `name`, a commit. They are far from
/// those that anybody counts up to.
pub fn fresh(name: &str) -> Seed {
    Seed((1 << 32) + xxh3_64(name.as_bytes()) % (1 << 32))
}
