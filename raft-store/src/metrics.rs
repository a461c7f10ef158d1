//! Numbers about the two databases, for `/metrics`.

use std::sync::{Arc, Weak};
use std::time::Duration;

use rocksdb::{DB, properties};

use crate::counters::Counters;
use crate::{data_dir, rocks};

/// Reads the numbers. Holds no database open.
#[derive(Debug, Clone)]
pub struct StoreMetrics {
    pub(crate) log: Weak<DB>,
    pub(crate) state: Weak<DB>,
    /// What the store counts itself.
    pub counters: Arc<Counters>,
}

/// What RocksDB reports of one database.
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

    /// The numbers of the log's database.
    pub fn log(&self) -> DatabaseNumbers {
        DatabaseNumbers::read(&self.log, &crate::log::FAMILIES)
    }

    /// The numbers of the state's database.
    pub fn state(&self) -> DatabaseNumbers {
        DatabaseNumbers::read(&self.state, &crate::machine::FAMILIES)
    }
}

impl DatabaseNumbers {
    /// The numbers now. Those of a closed database are zero.
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
