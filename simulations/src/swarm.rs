//! Many seeds on several processors at once.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::campaign::{Subject, Summary};
use crate::report::Report;
use crate::seed::Seed;

/// Which seeds are run, and how.
#[derive(Debug, Clone)]
pub struct Swarm {
    /// What is run.
    pub subject: Subject,
    /// With which seeds.
    pub seeds: Range<u64>,
    /// Of these only those whose runs stand in regions.
    pub in_regions: bool,
    /// No seed is begun afterwards.
    pub until: Option<Instant>,
    /// How many runs go on at once.
    pub jobs: usize,
}

impl Swarm {
    /// Runs them. `observe` is given each report as it comes, in no order, and what came of all so
    /// far; and nothing but the latter when there was none for a while.
    ///
    /// # Panics
    /// If `observe` does.
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
