//! Runs many seeds on several processors.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use crate::campaign::{RUN_MAX, Summary, TestedProgram};
use crate::report::Report;
use crate::seed::Seed;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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
    /// far. It gets only the summary if no report arrived within `pause`. A run that does not end
    /// within [`RUN_MAX`] has failed, and no other is waited for.
    ///
    /// # Panics
    /// If `observe` panics.
    pub fn run(
        &self,
        pause: Duration,
        mut observe: impl FnMut(Option<Report>, &Summary),
    ) -> Summary {
        let mut summary = Summary::new(self.subject);
        let next = Arc::new(AtomicU64::new(self.seeds.start));
        let running = Arc::new(Mutex::new(BTreeMap::new()));
        let (sender, receiver) = mpsc::sync_channel::<Report>(self.jobs);
        // The threads are not joined: one of them may not end.
        for _ in 0..self.jobs.max(1) {
            let (swarm, sender) = (self.clone(), sender.clone());
            let (next, running) = (Arc::clone(&next), Arc::clone(&running));
            std::thread::spawn(move || {
                while let Some(seed) = swarm.next(&next) {
                    lock(&running).insert(seed.0, Instant::now());
                    let report = swarm.subject.run(seed);
                    lock(&running).remove(&seed.0);
                    if sender.send(report).is_err() {
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
                Err(mpsc::RecvTimeoutError::Disconnected) => return summary,
            }
            let is_over = |(_, begin): &(&u64, &Instant)| begin.elapsed() > RUN_MAX;
            if let Some((&seed, _)) = lock(&running).iter().find(is_over) {
                summary.add_endless(Seed(seed));
                return summary;
            }
        }
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
