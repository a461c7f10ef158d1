//! Numbers about the two databases, for `/metrics`.

use std::sync::{Arc, Weak};
use std::time::Duration;

use prometheus_client::metrics::histogram::Histogram;
use rocksdb::{DB, properties};

use crate::counters::Counters;
use crate::{data_dir, rocks};

/// Reads the numbers. Holds no database open.
#[derive(Debug, Clone)]
pub struct StoreMetrics {
    pub(crate) log: Weak<DB>,
    pub(crate) state: Weak<DB>,
    pub(crate) counters: Arc<Counters>,
}

/// The numbers at one moment.
#[derive(Debug, Clone)]
pub struct StoreNumbers {
    /// The log's database.
    pub log: DatabaseNumbers,
    /// The state's database.
    pub state: DatabaseNumbers,
    /// Durations of the syncs of the log, in seconds.
    pub sync: Histogram,
    /// Durations of the apply batches, in seconds.
    pub apply: Histogram,
    /// Log entries synced since start.
    pub synced_entries: u64,
    /// Log entries applied since start.
    pub applied_entries: u64,
    /// Snapshots that could not be built, since start.
    pub snapshots_failed: u64,
    /// Snapshots of this node's own that were found damaged, since start.
    pub snapshots_damaged: u64,
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

impl StoreMetrics {
    /// How long the store has been waiting for its disk, if it waits just now: a disk that hangs
    /// gives no error.
    pub fn waits_for_disk(&self) -> Option<Duration> {
        self.counters.disk_wait.longest()
    }

    /// The numbers now. Those of a closed database are zero.
    pub fn read(&self) -> StoreNumbers {
        let read = |db: &Weak<DB>, families: &[&str]| {
            let numbers = db.upgrade().map(|db| DatabaseNumbers::read(&db, families));
            numbers.unwrap_or_default()
        };
        StoreNumbers {
            log: read(&self.log, &crate::log::FAMILIES),
            state: read(&self.state, &crate::machine::families()),
            sync: self.counters.sync.clone(),
            apply: self.counters.apply.clone(),
            synced_entries: self.counters.synced_entries.get(),
            applied_entries: self.counters.applied_entries.get(),
            snapshots_failed: self.counters.snapshots_failed.get(),
            snapshots_damaged: self.counters.snapshots_damaged.get(),
        }
    }
}

impl DatabaseNumbers {
    fn read(db: &DB, families: &[&str]) -> Self {
        let number = |property| db.property_int_value(property).ok().flatten().unwrap_or(0);
        let sum = |property: &rocksdb::properties::PropName| {
            let numbers = families.iter().map(|name| {
                let number = db.property_int_value_cf(rocks::family(db, name), property);
                number.ok().flatten().unwrap_or(0)
            });
            numbers.sum()
        };
        Self {
            wal_bytes: data_dir::wal_files(db.path()).map_or(0, |files| files.values().sum()),
            memtable_bytes: sum(properties::SIZE_ALL_MEM_TABLES),
            sst_bytes: sum(properties::TOTAL_SST_FILES_SIZE),
            pending_compaction_bytes: sum(properties::ESTIMATE_PENDING_COMPACTION_BYTES),
            block_cache_bytes: number(properties::BLOCK_CACHE_USAGE),
            background_errors: number(properties::BACKGROUND_ERRORS),
        }
    }
}
