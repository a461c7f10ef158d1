//! An open data directory.

use std::sync::Arc;

use placement_model::mutant;

use crate::base::Base;
use crate::data_dir::{self, RECOVERED, SKIPPED};
use crate::error::{OpenError, Result};
use crate::files;
use crate::health::Health;
use crate::identity::Identity;
use crate::log::LogStore;
use crate::machine::{AppliedState, Drafts, Ledger, SnapshotDir, StateMachine, Views};
use crate::metrics::StoreMetrics;
use crate::options::StoreOptions;
use crate::types::TypeConfig;
use placement_base::log_messages::log;

/// The Raft instance of this node.
pub type Raft = openraft::Raft<TypeConfig, StateMachine>;

/// An open data directory. openraft takes the log and the state machine.
pub struct Store {
    /// The owner of the directory.
    pub identity: Identity,
    /// The number of this start of the node; durable before the store is returned.
    pub boot: u64,
    /// The log, for openraft.
    pub log: LogStore,
    /// The state machine, for openraft.
    pub machine: StateMachine,
    /// The applied state of this node, for readers.
    pub views: Views,
    /// The changes that this node has applied.
    pub ledger: Ledger,
    /// The first storage failure, if any.
    pub health: Health,
    /// Receives and verifies snapshots from other nodes.
    pub snapshots: SnapshotDir,
    /// Builds snapshots of this node's state.
    pub drafts: Drafts,
    /// Statistics of the databases, for `/metrics`.
    pub metrics: StoreMetrics,
}

/// Opens a data directory that [`create`](crate::create) has created.
///
/// # Errors
/// [`OpenError`]; each message says what to do.
pub fn open(options: StoreOptions) -> Result<Store> {
    let dir = &options.dir;
    let base = Base::enter(&options)?;
    let identity = base.identity;
    for entry in data_dir::lines(dir, SKIPPED)? {
        log!(
            ENTRY_SKIPPED,
            entry,
            "an operator skipped an entry of the log"
        );
    }
    for entry in data_dir::lines(dir, RECOVERED)? {
        log!(
            NODE_RECOVERED,
            entry,
            "an operator has recovered this node alone after its cluster had lost its majority"
        );
    }
    let snapshots = SnapshotDir::open(&base)?;
    let machine = StateMachine::open(&base, snapshots.clone())?;
    let views = machine.views();
    let applied = views.current();
    let log = LogStore::open(&base, applied.last)?;
    let is_used = log.is_used() || applied.last.is_some();
    data_dir::check_boots(dir, identity, is_used, written_in(&applied, identity))?;
    files::point("the store is opened", dir);
    // RocksDB does not sync the parent of its directory. A start is counted only after the
    // directory entry of the log is durable: from then on, a missing log is an error.
    files::sync_dir(dir).map_err(|error| OpenError::io("sync", dir, error))?;
    let boot = match data_dir::boots(dir)? {
        last if mutant!("reuse-boots") && last > 0 => last,
        _ => data_dir::next_boot(dir)?,
    };
    files::point("the start is counted", dir);
    let drafts = machine.drafts();
    let ledger = machine.ledger();
    let metrics = StoreMetrics {
        log: log.database(),
        state: machine.database(),
        counters: Arc::clone(&base.counters),
    };
    Ok(Store {
        identity,
        boot,
        log,
        machine,
        views,
        ledger,
        health: base.health.clone(),
        snapshots,
        drafts,
        metrics,
    })
}

/// The last start of this node recorded in its state.
pub(crate) fn written_in(applied: &AppliedState, identity: Identity) -> Option<u64> {
    let cluster = &applied.cluster;
    let session = cluster.session(identity.node)?;
    (!cluster.is_retired(identity.node)).then_some(session.boot)
}
