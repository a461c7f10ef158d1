//! Counters of the store.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

use crate::disk_wait::DiskWait;

/// Upper bounds of the buckets of durations, in seconds; the last bucket has none.
const BOUNDS: [f64; 14] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0,
    5.0,
];

/// Counters of the store since start. Durations are in seconds.
#[derive(Debug)]
pub struct Counters {
    /// Durations of log syncs.
    pub sync: Histogram,
    /// Durations of apply batches.
    pub apply: Histogram,
    /// Log entries that were synced.
    pub synced_entries: Counter,
    /// Log entries that were applied.
    pub applied_entries: Counter,
    /// Failed attempts to build a snapshot.
    pub snapshots_failed: Counter,
    /// Damaged snapshots built by this node.
    pub snapshots_damaged: Counter,
    pub(crate) disk_wait: DiskWait,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            sync: Histogram::new(BOUNDS),
            apply: Histogram::new(BOUNDS),
            synced_entries: Counter::default(),
            applied_entries: Counter::default(),
            snapshots_failed: Counter::default(),
            snapshots_damaged: Counter::default(),
            disk_wait: DiskWait::default(),
        }
    }
}
