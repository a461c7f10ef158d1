//! Opening a data directory.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use crate::health::{Health, Reporter};
use crate::identity::{self, FORMAT, Identity};
use crate::log::LogStore;
use crate::machine::{SnapshotDir, StateMachine, Views};
use crate::metrics::{Counters, StoreMetrics};
use crate::options::StoreOptions;

pub(crate) const LOG_DIR: &str = "log";
pub(crate) const STATE_DIR: &str = "state";
pub(crate) const SNAPSHOT_DIR: &str = "snapshots";
const LOCK: &str = "lock";

/// An open data directory, to be taken apart: the log and the state machine go to openraft.
pub struct Store {
    /// Whose directory it is.
    pub identity: Identity,
    /// Which start of the node this is: rises with each, durably, before anything is handed out.
    pub boot: u64,
    /// The log, for openraft.
    pub log: LogStore,
    /// The state machine, for openraft.
    pub machine: StateMachine,
    /// What this node has applied, for readers.
    pub views: Views,
    /// Whether the disk still does what it is told.
    pub health: Health,
    /// Where snapshots from other nodes are received.
    pub snapshots: SnapshotDir,
    /// Numbers for `/metrics`.
    pub metrics: StoreMetrics,
}

/// Why a data directory cannot be opened. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nobody's directory yet.
    #[error("{dir} is not the data directory of a node: form a cluster or join one first")]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// A new node was to be made where there is one.
    #[error(
        "{dir} is the data directory of node {} of cluster {} already: start it without forming or \
         joining a cluster, or choose another directory",
        found.node, found.cluster
    )]
    Exists {
        /// The directory.
        dir: PathBuf,
        /// Whose it is.
        found: Identity,
    },
    /// A new node was to be made where data is, but no identity.
    #[error("{dir} holds data, but does not say of which node: choose another directory")]
    NotEmpty {
        /// The directory.
        dir: PathBuf,
    },
    /// Another process has it open.
    #[error(
        "the data directory {dir} is in use by another placementd{holder}: stop that one first, or \
         give each its own directory"
    )]
    Locked {
        /// The directory.
        dir: PathBuf,
        /// ` (process 4711)`, if that is known.
        holder: String,
    },
    /// The directory of another cluster.
    #[error("{dir} belongs to cluster {found}, not to {expected}: this is the wrong directory")]
    OtherCluster {
        /// The directory.
        dir: PathBuf,
        /// The cluster it belongs to.
        found: Uuid,
        /// The cluster it was to belong to.
        expected: Uuid,
    },
    /// The directory of another node.
    #[error("{dir} belongs to node {found}, not to node {expected}: this is the wrong directory")]
    OtherNode {
        /// The directory.
        dir: PathBuf,
        /// The node it belongs to.
        found: u64,
        /// The node it was to belong to.
        expected: u64,
    },
    /// Written by a newer binary.
    #[error(
        "{dir} has format {format}, but this placementd knows formats up to {FORMAT}: start it \
         with the newer version that wrote it"
    )]
    NewerFormat {
        /// The directory.
        dir: PathBuf,
        /// Its format.
        format: u32,
    },
    /// A newer binary has written a table that this one does not know.
    #[error(
        "{path} holds the table {table:?}, which this placementd does not know: start it with the \
         newer version that wrote it"
    )]
    NewerTable {
        /// The database.
        path: PathBuf,
        /// The table.
        table: String,
    },
    /// What was written is not what is read.
    #[error(
        "{path} is damaged ({reason}): do not repair it by hand; remove this node from the \
         cluster and let it join anew with an empty directory"
    )]
    Damaged {
        /// The file or database.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The node has started before, and its log is not there.
    #[error(
        "{log} is gone, but node {} of cluster {} has started before: without its log it no longer \
         knows how it voted and what it acknowledged, and by voting again it could lose committed \
         writes. Put the whole data directory back as it was; if that is impossible, remove this \
         node from the cluster and let it join anew with an empty directory and a new id",
        identity.node, identity.cluster
    )]
    LogGone {
        /// Where the log was.
        log: PathBuf,
        /// Whose directory it is.
        identity: Identity,
    },
    /// The operating system said no.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The answer.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// Opens a data directory that [`create`](crate::create) has made.
///
/// In a simulation ([`Disk::Simulated`](crate::Disk::Simulated)) it must be called inside a
/// `LocalSet`, where it spawns the task that syncs the log.
///
/// # Errors
/// [`OpenError`], each variant with what to do.
pub fn open(options: StoreOptions) -> Result<Store, OpenError> {
    let dir = &options.dir;
    if !dir.exists() {
        return Err(OpenError::Missing { dir: dir.clone() });
    }
    let lock = lock(dir)?;
    let identity =
        identity::identity(dir)?.ok_or_else(|| OpenError::Missing { dir: dir.clone() })?;
    check_owner(&options, &identity)?;
    check_log(dir, identity)?;
    let snapshots_dir = dir.join(SNAPSHOT_DIR);
    fs::create_dir_all(&snapshots_dir)
        .map_err(|error| OpenError::io("create", &snapshots_dir, error))?;

    let (reporter, health) = Reporter::new();
    let snapshots = SnapshotDir::open(&snapshots_dir, identity)?;
    let cache = rocksdb::Cache::new_lru_cache(options.block_cache_bytes);
    let counters = Arc::new(Counters::default());
    let log = LogStore::open(
        &options,
        &cache,
        reporter.clone(),
        lock.clone(),
        Arc::clone(&counters),
    )?;
    let machine = StateMachine::open(
        &options,
        &cache,
        snapshots.clone(),
        reporter,
        lock,
        Arc::clone(&counters),
    )?;
    // RocksDB does not sync the directory that it makes its own in. Only what is sure to be found
    // again may count as a start: from then on a missing log means a lost one.
    identity::sync_dir(dir).map_err(|error| OpenError::io("sync", dir, error))?;
    let boot = identity::next_boot(dir)?;
    let views = machine.views();
    let metrics = StoreMetrics::new(log.database(), machine.database(), counters);
    Ok(Store {
        identity,
        boot,
        log,
        machine,
        views,
        health,
        snapshots,
        metrics,
    })
}

fn check_owner(options: &StoreOptions, found: &Identity) -> Result<(), OpenError> {
    let dir = options.dir.clone();
    if let Some(expected) = options.cluster
        && expected != found.cluster
    {
        return Err(OpenError::OtherCluster {
            dir,
            found: found.cluster,
            expected,
        });
    }
    if let Some(expected) = options.node
        && expected != found.node
    {
        return Err(OpenError::OtherNode {
            dir,
            found: found.node,
            expected,
        });
    }
    Ok(())
}

/// A node that has started before has voted, and must find its votes again.
fn check_log(dir: &Path, identity: Identity) -> Result<(), OpenError> {
    let log = dir.join(LOG_DIR);
    let has_started = identity::boots(dir)? > 0;
    if has_started && !crate::rocks::is_there(&log) {
        return Err(OpenError::LogGone { log, identity });
    }
    Ok(())
}

/// Keeps other processes out for as long as any clone of it lives.
#[derive(Debug, Clone)]
pub(crate) struct DirLock {
    _file: Arc<File>,
}

/// Whether somebody has the data directory open, this process included: a store is closed once the
/// last of its handles is gone, those that openraft's tasks hold included.
pub fn in_use(dir: &Path) -> bool {
    matches!(lock(dir), Err(OpenError::Locked { .. }))
}

/// Locks the data directory for this process.
pub(crate) fn lock(dir: &Path) -> Result<DirLock, OpenError> {
    let path = dir.join(LOCK);
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|error| OpenError::io("open", &path, error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Only for the message: who writes it may not have done so yet.
            let _ = file.read_to_string(&mut holder);
            let holder = match holder.trim() {
                "" => String::new(),
                process => format!(" (process {process})"),
            };
            return Err(OpenError::Locked {
                dir: dir.to_owned(),
                holder,
            });
        }
        Err(TryLockError::Error(error)) => return Err(OpenError::io("lock", &path, error)),
    }
    let note = || -> io::Result<()> {
        file.set_len(0)?;
        file.write_all(format!("{}\n", std::process::id()).as_bytes())
    };
    let mut note = note;
    note().map_err(|error| OpenError::io("write", &path, error))?;
    Ok(DirLock {
        _file: Arc::new(file),
    })
}
