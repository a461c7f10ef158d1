//! Options of a store.

use std::path::PathBuf;
use std::sync::Arc;

use rocksdb::Cache;
use uuid::Uuid;

use crate::applier::{Applier, Rules};
use crate::log_disk::{LogDisk, RocksDisk};
use crate::observer::{LogEvent, LogObserver};

/// Options of a store. Start from [`StoreOptions::new`].
#[derive(Clone)]
pub struct StoreOptions {
    /// The node's data directory.
    pub dir: PathBuf,
    /// The node that must own the directory; `None` accepts any.
    pub node: Option<u64>,
    /// The cluster that must own the directory; `None` accepts any.
    pub cluster: Option<Uuid>,
    /// Decides the outcomes of commands.
    pub applier: Arc<dyn Applier>,
    /// Syncs the log to disk.
    pub disk: Arc<dyn LogDisk>,
    /// Observes the log; used only by simulations.
    pub log_observer: Option<Arc<dyn LogObserver>>,
    /// Bytes of recent log entries cached for replication and apply. Entries that are not yet on
    /// disk are cached regardless of their size.
    pub log_cache_bytes: usize,
    /// Maximum bytes of log entries that wait for the disk; further appends wait.
    pub log_queue_bytes: usize,
    /// Size of RocksDB's block cache in bytes, shared by both databases.
    pub block_cache_bytes: usize,
    /// Size of the state's RocksDB write buffer in bytes.
    pub write_buffer_bytes: usize,
    /// Size of the log's RocksDB write buffer in bytes, which is also the length of the files that
    /// the log is written to.
    pub log_buffer_bytes: usize,
    /// Number of applied but unwritten row changes that triggers a write.
    pub rows_behind: usize,
    /// Bytes of applied but unwritten ledger entries that trigger a write.
    pub ledger_behind: usize,
    /// Maximum bytes of the ledger on disk; the oldest entries are dropped.
    pub ledger_bytes: u64,
}

impl StoreOptions {
    /// The default options for a data directory.
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

    /// Reports an event to the log observer, if any.
    pub(crate) fn observed(&self, event: LogEvent<'_>) {
        if let Some(observer) = &self.log_observer {
            observer.note(event);
        }
    }

    pub(crate) fn cache(&self) -> Cache {
        Cache::new_lru_cache(self.block_cache_bytes)
    }
}
