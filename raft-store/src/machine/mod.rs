//! The state machine.

mod snapshot_file;
mod views;

use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};

use futures::Stream;
use openraft::OptionalSend;
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use rocksdb::{Cache, DB};

use crate::health::Reporter;
use crate::identity::Identity;
use crate::metrics::Counters;
use crate::open::{DirLock, OpenError};
use crate::options::StoreOptions;
use crate::types::{LogId, Snapshot, SnapshotMeta, StoredMembership, TypeConfig};

pub use snapshot_file::{SnapshotFile, SnapshotReceiver};
pub use views::{AppliedState, Stopped, Views};

/// openraft's state machine.
#[derive(Debug)]
pub struct StateMachine {
    views: Views,
}

/// Builds one snapshot.
#[derive(Debug)]
pub struct SnapshotBuilder {}

/// Where this node's snapshots lie.
#[derive(Debug, Clone)]
pub struct SnapshotDir {
    dir: Arc<Path>,
}

impl SnapshotDir {
    pub(crate) fn open(dir: &Path, _identity: Identity) -> Result<Self, OpenError> {
        Ok(Self { dir: dir.into() })
    }

    /// Begins to take in a snapshot from another node.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn receive(&self) -> io::Result<SnapshotReceiver> {
        SnapshotReceiver::create(&self.dir)
    }
}

fn absent() -> io::Error {
    io::Error::other("the state machine is not written yet")
}

impl StateMachine {
    pub(crate) fn open(
        _options: &StoreOptions,
        _cache: &Cache,
        _snapshots: SnapshotDir,
        _reporter: Reporter,
        _lock: DirLock,
        _counters: Arc<Counters>,
    ) -> Result<Self, OpenError> {
        let (_, views) = views::Publisher::new(AppliedState::default());
        Ok(Self { views })
    }

    pub(crate) fn database(&self) -> Weak<DB> {
        Weak::new()
    }

    pub(crate) fn views(&self) -> Views {
        self.views.clone()
    }
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        Err(absent())
    }

    async fn apply<S>(&mut self, _entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        Err(absent())
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        SnapshotBuilder {}
    }

    async fn install_snapshot(
        &mut self,
        _meta: &SnapshotMeta,
        _snapshot: SnapshotFile,
    ) -> Result<(), io::Error> {
        Err(absent())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        Err(absent())
    }
}

impl RaftSnapshotBuilder<TypeConfig> for SnapshotBuilder {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        Err(absent())
    }
}
