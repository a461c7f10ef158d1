//! Numbers about the two databases, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rocksdb::{DB, properties};

use crate::{rocks, simulation};

/// Upper bounds of a [`Histogram`]'s buckets, in microseconds; the last bucket has none.
const BOUNDS_US: [u64; 14] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
    5_000_000,
];

/// Reads the numbers. Holds no database open.
#[derive(Debug, Clone)]
pub struct StoreMetrics {
    log: Weak<DB>,
    state: Weak<DB>,
    counters: Arc<Counters>,
}

/// What the store counts itself.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) sync: Durations,
    pub(crate) apply: Durations,
    pub(crate) synced_entries: AtomicU64,
    pub(crate) applied_entries: AtomicU64,
}

/// The numbers at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoreNumbers {
    /// The log's database.
    pub log: DatabaseNumbers,
    /// The state's database.
    pub state: DatabaseNumbers,
    /// Syncs of the log, with their durations.
    pub sync: Histogram,
    /// Apply batches, with their durations.
    pub apply: Histogram,
    /// Log entries synced since start.
    pub synced_entries: u64,
    /// Log entries applied since start.
    pub applied_entries: u64,
}

/// What RocksDB says of one database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatabaseNumbers {
    /// Bytes of write-ahead log files on disk.
    pub wal_bytes: u64,
    /// Bytes of write buffers in memory.
    pub memtable_bytes: u64,
    /// Bytes of sorted files on disk.
    pub sst_bytes: u64,
    /// Bytes that compactions still have to rewrite.
    pub pending_compaction_bytes: u64,
    /// Bytes of the block cache in use; the cache is shared by both databases.
    pub block_cache_bytes: u64,
    /// Background errors since start.
    pub background_errors: u64,
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

impl StoreMetrics {
    pub(crate) fn new(log: Weak<DB>, state: Weak<DB>, counters: Arc<Counters>) -> Self {
        Self {
            log,
            state,
            counters,
        }
    }

    /// The numbers now. Those of a closed database are zero.
    pub fn read(&self) -> StoreNumbers {
        let read = |db: &Weak<DB>, families: &[&str]| {
            db.upgrade()
                .map(|db| DatabaseNumbers::read(&db, families))
                .unwrap_or_default()
        };
        StoreNumbers {
            log: read(&self.log, &crate::log::FAMILIES),
            state: read(&self.state, &crate::machine::families()),
            sync: self.counters.sync.read(),
            apply: self.counters.apply.read(),
            synced_entries: self.counters.synced_entries.load(Ordering::Relaxed),
            applied_entries: self.counters.applied_entries.load(Ordering::Relaxed),
        }
    }
}

impl DatabaseNumbers {
    fn read(db: &DB, families: &[&str]) -> Self {
        let number = |property| db.property_int_value(property).ok().flatten().unwrap_or(0);
        let sum = |property: &rocksdb::properties::PropName| {
            let numbers = families.iter().map(|name| {
                db.property_int_value_cf(rocks::family(db, name), property)
                    .ok()
                    .flatten()
            });
            numbers.map(Option::unwrap_or_default).sum()
        };
        Self {
            wal_bytes: simulation::wal_files(db.path()).map_or(0, |files| files.values().sum()),
            memtable_bytes: sum(properties::SIZE_ALL_MEM_TABLES),
            sst_bytes: sum(properties::TOTAL_SST_FILES_SIZE),
            pending_compaction_bytes: sum(properties::ESTIMATE_PENDING_COMPACTION_BYTES),
            block_cache_bytes: number(properties::BLOCK_CACHE_USAGE),
            background_errors: number(properties::BACKGROUND_ERRORS),
        }
    }
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

    fn read(&self) -> Histogram {
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
