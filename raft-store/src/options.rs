//! What a store is opened with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::applier::{Applier, Rules};
use crate::observer::LogObserver;
use crate::runtime;
use crate::simulation::SimulatedDisk;

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
    pub disk: Disk,
    /// Who looks at the log from outside: nobody, but in simulations.
    pub log_observer: Option<Arc<dyn LogObserver>>,
    /// Bytes of recent log entries kept in memory for replication and apply. Entries that are not
    /// yet on disk are kept whatever they weigh.
    pub log_cache_bytes: usize,
    /// Bytes of log entries that wait for the disk, at most: beyond, an append waits before it is taken.
    pub log_queue_bytes: usize,
    /// Bytes of RocksDB's block cache, for both databases together.
    pub block_cache_bytes: usize,
    /// Bytes of RocksDB's write buffers, for each of the two databases.
    pub write_buffer_bytes: usize,
    /// Bytes of rows that are written at once where a snapshot replaces the state.
    pub replace_batch_bytes: usize,
    /// Changes of rows that are applied and not written, until they are written at once.
    pub rows_behind: usize,
    /// An apply batch that takes longer is logged with its timings.
    pub slow_apply: Duration,
    /// Broken on purpose, for simulations that prove that their checks can fail. No configuration
    /// reaches this.
    pub faults: Faults,
}

impl StoreOptions {
    /// The product's options for a data directory.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            node: None,
            cluster: None,
            applier: Arc::new(Rules),
            disk: Disk::Real,
            log_observer: None,
            log_cache_bytes: 16 << 20,
            log_queue_bytes: 64 << 20,
            block_cache_bytes: 64 << 20,
            write_buffer_bytes: 64 << 20,
            replace_batch_bytes: runtime::limits().install_batch,
            rows_behind: 16_384,
            slow_apply: Duration::from_millis(100),
            faults: Faults::default(),
        }
    }
}

/// What syncs the log.
#[derive(Debug, Clone, Default)]
pub enum Disk {
    /// A thread of its own, with real syncs.
    #[default]
    Real,
    /// A task of the simulated node, with delays that follow from a seed.
    Simulated(SimulatedDisk),
}

/// Bugs to inject.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Tells openraft that log entries and votes are durable before they are synced.
    pub acknowledge_before_sync: bool,
    /// Tells openraft that votes are durable, and writes none.
    pub forget_votes: bool,
    /// Forgets what openraft truncates, and leaves it on disk.
    pub drop_truncations: bool,
    /// Tells openraft that entries are durable, and does not write each sixteenth.
    pub drop_appends: bool,
    /// Tells openraft at the start that the whole log is committed.
    pub commit_the_tail: bool,
    /// Entries that are read from disk have forgotten who asked for them.
    pub lose_request_ids: bool,
    /// Starts the node under the number of its last start.
    pub reuse_boots: bool,
    /// Leaves out of snapshots what requests were answered, and has their digest agree.
    pub snapshots_without_sessions: bool,
    /// Does not make the indexes of a snapshot that is installed.
    pub stale_indexes: bool,
    /// Puts the state of the snapshot before in place of what was applied since.
    pub older_snapshot_returns: bool,
    /// Does not write the vote that a node gives itself.
    pub forget_own_votes: bool,
    /// Writes with the commit index the vote that was there when the log was opened.
    pub older_vote_returns: bool,
    /// Leaves the traits of providers out of a snapshot that is installed.
    pub install_without_traits: bool,
    /// Takes learners for voters when the membership is read back at the start.
    pub count_learners: bool,
    /// Takes a state for durable that was applied while the rows were flushed.
    pub cover_what_is_not_flushed: bool,
    /// A node of a restored cluster begins to count its starts again.
    pub restore_forgets_boots: bool,
    /// A restored cluster lets in whoever has a token of the one that it was.
    pub restore_keeps_tokens: bool,
    /// Does not hold the rows against their digest at the start.
    pub believe_rows: bool,
}
