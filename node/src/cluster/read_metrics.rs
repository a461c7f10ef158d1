//! Numbers of the read index.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Rounds of asking the leader how far reads must be.
#[derive(Debug, Default)]
pub(crate) struct ReadMetrics {
    pub(crate) rounds: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) micros: AtomicU64,
}

impl ReadMetrics {
    /// One round served this many reads.
    pub(super) fn round(&self, reads: usize, took: Duration) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.reads.fetch_add(reads as u64, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// One round got no answer.
    pub(super) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}
