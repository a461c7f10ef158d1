//! Runs many seeds on several processors.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::campaign::{Summary, TestedProgram};
use crate::report::Report;
use crate::seed::Seed;

/// A set of seeds to run.
#[derive(Debug, Clone)]
pub struct Swarm {
    /// What each seed runs.
    pub subject: TestedProgram,
    /// Range of seeds, without its end.
    pub seeds: Range<u64>,
    /// Run only the seeds whose clusters span regions.
    pub in_regions: bool,
    /// Start no seed after this time.
    pub until: Option<Instant>,
    /// Number of concurrent runs.
    pub jobs: usize,
}

impl Swarm {
    /// Runs the seeds. `observe` gets each report as it arrives, in any order, and the summary so
    /// far. It gets only the summary if no report arrived within `pause`.
    ///
    /// # Panics
    /// If `observe` panics.
    pub fn run(
        &self,
        pause: Duration,
        mut observe: impl FnMut(Option<Report>, &Summary),
    ) -> Summary {
        let mut summary = Summary::new(self.subject);
        let next = AtomicU64::new(self.seeds.start);
        let (sender, receiver) = mpsc::sync_channel::<Report>(self.jobs);
        std::thread::scope(|workers| {
            for _ in 0..self.jobs.max(1) {
                let (sender, next) = (sender.clone(), &next);
                workers.spawn(move || {
                    while let Some(seed) = self.next(next) {
                        if sender.send(self.subject.run(seed)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            loop {
                match receiver.recv_timeout(pause) {
                    Ok(report) => {
                        summary.add(&report);
                        observe(Some(report), &summary);
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => observe(None, &summary),
                    Err(mpsc::RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        summary
    }

    fn next(&self, next: &AtomicU64) -> Option<Seed> {
        loop {
            let over = self.until.is_some_and(|until| Instant::now() >= until);
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if over || seed >= self.seeds.end {
                return None;
            }
            let is_meant = || self.subject.course(Seed(seed)).0.regions.is_some();
            if !self.in_regions || is_meant() {
                return Some(Seed(seed));
            }
        }
    }
}
