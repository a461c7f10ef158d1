//! What a store is opened with.

use std::path::PathBuf;
use std::sync::Arc;

use rocksdb::Cache;
use uuid::Uuid;

use crate::applier::{Applier, Rules};
use crate::log_disk::{LogDisk, RocksDisk};
use crate::observer::{LogEvent, LogObserver};

/// What a store is opened with. Start from [`StoreOptions::new`].
#[derive(Clone)]
pub struct StoreOptions {
    /// The node's data directory.
    pub dir: PathBuf,
    /// The node that the directory must belong to; `None` takes whichever it is.
    pub node: Option<u64>,
    /// The cluster that the directory must belong to; `None` takes whichever it is.
    pub cluster: Option<Uuid>,
    /// What decides on commands.
    pub applier: Arc<dyn Applier>,
    /// What syncs the log.
    pub disk: Arc<dyn LogDisk>,
    /// Observes the log; simulations alone have one.
    pub log_observer: Option<Arc<dyn LogObserver>>,
    /// Bytes of recent log entries kept in memory for replication and apply. Entries that are not
    /// yet on disk are kept whatever they weigh.
    pub log_cache_bytes: usize,
    /// Bytes of log entries that wait for the disk, at most: beyond, an append waits before it is
    /// taken.
    pub log_queue_bytes: usize,
    /// Bytes of RocksDB's block cache, for both databases together.
    pub block_cache_bytes: usize,
    /// Bytes of RocksDB's write buffer of the state.
    pub write_buffer_bytes: usize,
    /// Bytes of that of the log: so long are the files that the log is written to.
    pub log_buffer_bytes: usize,
    /// Changes of rows that are applied and not written, until they are written at once.
    pub rows_behind: usize,
    /// Bytes of the ledger that are applied and not written, until they are written at once.
    pub ledger_behind: usize,
    /// Bytes of the ledger on the disk, at most: beyond, what the oldest entries have changed is
    /// dropped.
    pub ledger_bytes: u64,
}

impl StoreOptions {
    /// The product's options for a data directory.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            node: None,
            cluster: None,
            applier: Arc::new(Rules),
            disk: Arc::new(RocksDisk),
            log_observer: None,
            log_cache_bytes: 16 << 20,
            log_queue_bytes: 64 << 20,
            block_cache_bytes: 64 << 20,
            write_buffer_bytes: 64 << 20,
            log_buffer_bytes: 16 << 20,
            rows_behind: 16_384,
            ledger_behind: 8 << 20,
            ledger_bytes: 256 << 20,
        }
    }

    /// Reports to the observer, if there is one.
    pub(crate) fn observed(&self, event: LogEvent<'_>) {
        if let Some(observer) = &self.log_observer {
            observer.note(event);
        }
    }

    pub(crate) fn cache(&self) -> Cache {
        Cache::new_lru_cache(self.block_cache_bytes)
    }
}
