//! The whole store: a data directory, opened.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::counters::Counters;
use crate::data_dir::{self, DirLock, LOG_DIR, SNAPSHOT_DIR};
use crate::error::OpenError;
use crate::files;
use crate::health::{Health, Reporter};
use crate::identity::Identity;
use crate::log::LogStore;
use crate::machine::{AppliedState, Drafts, SnapshotDir, StateMachine, Views};
use crate::metrics::StoreMetrics;
use crate::options::StoreOptions;
use crate::rocks;
use crate::types::TypeConfig;
use crate::wire::RecordVersion;
use crate::write_version::WriteVersion;
use placement_model::mutant;

/// The Raft group of this node.
pub type Raft = openraft::Raft<TypeConfig, StateMachine>;

/// An open data directory. The log and the state machine go to openraft.
pub struct Store {
    /// The node that owns the directory.
    pub identity: Identity,
    /// The number of this start of the node; durable before the store is handed out.
    pub boot: u64,
    /// The log, for openraft.
    pub log: LogStore,
    /// The state machine, for openraft.
    pub machine: StateMachine,
    /// What this node has applied, for readers.
    pub views: Views,
    /// Whether the storage still works.
    pub health: Health,
    /// Receives and verifies snapshots of other nodes.
    pub snapshots: SnapshotDir,
    /// Builds snapshots of this node's state.
    pub drafts: Drafts,
    /// Numbers for `/metrics`.
    pub metrics: StoreMetrics,
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
    let (lock, identity) = enter(&options)?;
    for entry in data_dir::skipped(dir)? {
        tracing::warn!(entry, "an operator has had an entry of the log skipped");
    }
    for entry in data_dir::recovered(dir)? {
        tracing::warn!(
            entry,
            "an operator has recovered this node alone after its cluster had lost its majority"
        );
    }
    let snapshots_dir = dir.join(SNAPSHOT_DIR);
    fs::create_dir_all(&snapshots_dir)
        .map_err(|error| OpenError::io("create", &snapshots_dir, error))?;

    let (reporter, health) = Reporter::new();
    let snapshots = SnapshotDir::open(&snapshots_dir, identity, options.log_observer.clone())?;
    let cache = rocksdb::Cache::new_lru_cache(options.block_cache_bytes);
    let counters = Arc::new(Counters::default());
    let version = WriteVersion::new(RecordVersion::FIRST);
    let machine = StateMachine::open(
        &options,
        &cache,
        snapshots.clone(),
        version.clone(),
        reporter.clone(),
        lock.clone(),
        Arc::clone(&counters),
    )?;
    let views = machine.views();
    let applied = views.current();
    let log = LogStore::open(
        &options,
        &cache,
        version,
        reporter,
        lock,
        Arc::clone(&counters),
        applied.last,
    )?;
    let is_used = log.is_used() || applied.last.is_some();
    data_dir::check_boots(dir, identity, is_used, written_in(&applied, identity))?;
    files::point("the store is opened", dir);
    // RocksDB does not sync the directory that it makes its own in. Only what is sure to be found
    // again may count as a start: from then on a missing log means a lost one.
    files::sync_dir(dir).map_err(|error| OpenError::io("sync", dir, error))?;
    let boot = match data_dir::boots(dir)? {
        last if mutant!("reuse-boots") && last > 0 => last,
        _ => data_dir::next_boot(dir)?,
    };
    files::point("the start is counted", dir);
    let drafts = machine.drafts();
    let metrics = StoreMetrics::new(log.database(), machine.database(), counters);
    Ok(Store {
        identity,
        boot,
        log,
        machine,
        views,
        health,
        snapshots,
        drafts,
        metrics,
    })
}

/// Locks a data directory, and looks whether it may be opened at all.
pub(crate) fn enter(options: &StoreOptions) -> Result<(DirLock, Identity), OpenError> {
    let dir = &options.dir;
    if !dir.exists() {
        return Err(OpenError::Missing { dir: dir.clone() });
    }
    let lock = data_dir::lock(dir)?;
    let identity =
        data_dir::identity(dir)?.ok_or_else(|| OpenError::Missing { dir: dir.clone() })?;
    check_owner(options, &identity)?;
    data_dir::check_left(dir)?;
    check_log(dir, identity)?;
    Ok((lock, identity))
}

/// The last start of this node that its state knows of.
pub(crate) fn written_in(applied: &AppliedState, identity: Identity) -> Option<u64> {
    let cluster = &applied.cluster;
    let session = cluster.session(identity.node)?;
    (!cluster.is_retired(identity.node)).then_some(session.boot)
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

/// A node that has started before may have voted, and must find its votes again.
fn check_log(dir: &Path, identity: Identity) -> Result<(), OpenError> {
    let log = dir.join(LOG_DIR);
    let has_started = data_dir::boots(dir)? > 0;
    if has_started && !rocks::is_there(&log) {
        return Err(OpenError::LogGone { log, identity });
    }
    Ok(())
}
