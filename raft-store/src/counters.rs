//! What the store counts itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of a [`Histogram`]'s buckets, in microseconds; the last bucket has none.
const BOUNDS_US: [u64; 14] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
    5_000_000,
];

/// What the store counts itself.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) sync: Durations,
    pub(crate) apply: Durations,
    pub(crate) synced_entries: AtomicU64,
    pub(crate) applied_entries: AtomicU64,
}

/// Durations in buckets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram {
    /// Upper bound in seconds and number of durations up to it that exceed the bound before; the
    /// last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
    /// Sum of all durations, in seconds.
    pub sum_seconds: f64,
    /// Number of durations.
    pub count: u64,
}

/// Durations as they are counted.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
}

impl Durations {
    pub(crate) fn record(&self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Histogram {
        let bounds = BOUNDS_US
            .iter()
            .map(|us| *us as f64 / 1e6)
            .chain([f64::INFINITY]);
        let counts = self
            .buckets
            .iter()
            .map(|bucket| bucket.load(Ordering::Relaxed));
        let buckets: Vec<_> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        Histogram {
            buckets,
            sum_seconds: self.sum_us.load(Ordering::Relaxed) as f64 / 1e6,
            count,
        }
    }
}
