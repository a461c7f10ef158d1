//! The state machine: applies committed commands, publishes the state for readers, builds and
//! installs snapshots.

mod checkpoints;
mod core;
mod database;
mod snapshot_dir;
mod snapshot_file;
mod snapshot_format;
mod views;

use std::io;
use std::sync::{Arc, Weak};

use futures::{Stream, StreamExt};
use openraft::OptionalSend;
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use rocksdb::{Cache, DB};

use self::core::Core;
use crate::counters::Counters;
use crate::data_dir::DirLock;
use crate::error::OpenError;
use crate::health::Reporter;
use crate::options::StoreOptions;
use crate::runtime;
use crate::types::{LogId, SnapshotMeta, StoredMembership, TypeConfig};
use crate::write_version::WriteVersion;

pub use self::core::applying;
pub use checkpoints::Checkpoints;
#[cfg(test)]
pub(crate) use database::AppliedRecord;
pub(crate) use database::families;
pub use snapshot_dir::SnapshotDir;
pub use snapshot_file::{Snapshot, SnapshotFile, SnapshotReceiver};
pub use snapshot_format::SnapshotError;
pub use views::{AppliedState, Stopped, Views};

/// Entries applied in one batch, at most.
const BATCH_ENTRIES: usize = 512;

/// openraft's state machine.
#[derive(Debug)]
pub struct StateMachine {
    core: Arc<Core>,
    views: Views,
}

impl StateMachine {
    pub(crate) fn open(
        options: &StoreOptions,
        cache: &Cache,
        snapshots: SnapshotDir,
        version: WriteVersion,
        reporter: Reporter,
        lock: DirLock,
        counters: Arc<Counters>,
    ) -> Result<Self, OpenError> {
        let (core, views) =
            Core::open(options, cache, snapshots, version, reporter, lock, counters)?;
        Ok(Self {
            core: Arc::new(core),
            views,
        })
    }

    pub(crate) fn database(&self) -> Weak<DB> {
        Arc::downgrade(&self.core.database.db)
    }

    #[cfg(test)]
    fn core(&self) -> &Core {
        &self.core
    }

    pub(crate) fn views(&self) -> Views {
        self.views.clone()
    }
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        let applied = self.core.current();
        Ok((applied.last, applied.membership.clone()))
    }

    async fn apply<S>(&mut self, entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        let mut batches = entries.ready_chunks(BATCH_ENTRIES);
        while let Some(batch) = batches.next().await {
            self.core
                .apply(batch.into_iter().collect::<io::Result<_>>()?)?;
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        SnapshotBuilder {
            core: Arc::clone(&self.core),
            applied: self.core.current(),
        }
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: SnapshotFile,
    ) -> Result<(), io::Error> {
        let (core, meta) = (Arc::clone(&self.core), meta.clone());
        runtime::blocking(move || core.install(&meta, &snapshot)).await
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        Ok(self.core.snapshots.current())
    }
}

/// Builds one snapshot of the state at the moment it was made, while the state machine goes on.
#[derive(Debug)]
pub struct SnapshotBuilder {
    core: Arc<Core>,
    applied: Arc<AppliedState>,
}

impl RaftSnapshotBuilder<TypeConfig> for SnapshotBuilder {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        let (core, applied) = (Arc::clone(&self.core), Arc::clone(&self.applied));
        runtime::blocking(move || core.build_snapshot(&applied)).await
    }
}
