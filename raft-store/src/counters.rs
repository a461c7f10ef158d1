//! What the store counts itself.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::histogram::Histogram;

use crate::disk_wait::DiskWait;

/// Upper bounds of the buckets of durations, in seconds; the last bucket has none.
const BOUNDS: [f64; 14] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0,
    5.0,
];

/// What the store counts itself, since start. Durations are in seconds.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) sync: Histogram,
    pub(crate) apply: Histogram,
    pub(crate) synced_entries: AtomicU64,
    pub(crate) applied_entries: AtomicU64,
    pub(crate) snapshots_failed: AtomicU64,
    pub(crate) snapshots_damaged: AtomicU64,
    pub(crate) disk_wait: DiskWait,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            sync: Histogram::new(BOUNDS),
            apply: Histogram::new(BOUNDS),
            synced_entries: AtomicU64::new(0),
            applied_entries: AtomicU64::new(0),
            snapshots_failed: AtomicU64::new(0),
            snapshots_damaged: AtomicU64::new(0),
            disk_wait: DiskWait::default(),
        }
    }
}
