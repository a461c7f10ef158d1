//! Many seeds: run to the end whatever fails, and summed up.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use crate::faults::{Planned, drawn};
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
        let mutant = match self {
            Subject::Mutant(mutant) => Some(mutant),
            Subject::Product | Subject::Control(_) => None,
        };
        let (parameters, faults) = self.course(seed);
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
        format!("scripts/simulate --seed {}{more}", seed.0)
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
    /// How much of the time that they might take the clusters took to recover, in percent, sorted.
    calm_percents: Vec<u128>,
}

impl Summary {
    /// Nothing yet.
    pub fn new(subject: Subject) -> Self {
        Self {
            subject,
            seeds: 0,
            failed: Vec::new(),
            caught: Vec::new(),
            calm_percents: Vec::new(),
        }
    }

    /// Counts one run.
    pub fn add(&mut self, report: &Report) {
        self.seeds += 1;
        let seed = report.parameters.seed;
        match report.violations.first() {
            Some(first) => {
                let replay = self.subject.replay(seed);
                let count = report.violations.len();
                self.failed.push((replay, count, first.clone()));
            }
            None => {
                let percent = report.counts.calm_percent();
                let place = self.calm_percents.partition_point(|one| *one < percent);
                self.calm_percents.insert(place, percent);
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
            self.calm_percents.get(self.calm_percents.len() / 2),
            self.calm_percents.last(),
        ) {
            writeln!(
                f,
                "recovery after the storm took {middle} % of what it may take at the median, \
                 {most} % at most"
            )?;
        }
        Ok(())
    }
}

/// The first of the seeds that nobody has run before: chosen by `name`, a commit. They are far from
/// those that anybody counts up to.
pub fn fresh(name: &str) -> Seed {
    Seed((1 << 32) + xxh3_64(name.as_bytes()) % (1 << 32))
}
