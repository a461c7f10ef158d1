//! Statistics of the two databases, for `/metrics`.

use std::sync::{Arc, Weak};
use std::time::Duration;

use rocksdb::{DB, properties};

use crate::counters::Counters;
use crate::{data_dir, rocks};

/// Reads the statistics. Does not keep the databases open.
#[derive(Debug, Clone)]
pub struct StoreMetrics {
    pub(crate) log: Weak<DB>,
    pub(crate) state: Weak<DB>,
    /// Counters of the store.
    pub counters: Arc<Counters>,
}

/// Statistics of one database, as RocksDB reports them.
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
    /// How long the longest disk call in progress has taken; `None` if no call is in progress. A
    /// disk that hangs returns no error.
    pub fn waits_for_disk(&self) -> Option<Duration> {
        self.counters.disk_wait.longest()
    }

    /// Statistics of the log's database.
    pub fn log(&self) -> DatabaseNumbers {
        DatabaseNumbers::read(&self.log, &crate::log::FAMILIES)
    }

    /// Statistics of the state's database.
    pub fn state(&self) -> DatabaseNumbers {
        DatabaseNumbers::read(&self.state, &crate::machine::FAMILIES)
    }
}

impl DatabaseNumbers {
    /// Reads the current values. All are zero if the database is closed.
    fn read(db: &Weak<DB>, families: &[&str]) -> Self {
        let Some(db) = db.upgrade() else {
            return Self::default();
        };
        let number = |property| db.property_int_value(property).ok().flatten().unwrap_or(0);
        let sum = |property: &rocksdb::properties::PropName| {
            let numbers = families.iter().map(|name| {
                let number = db.property_int_value_cf(rocks::family(&db, name), property);
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
