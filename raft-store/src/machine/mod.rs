//! The state machine: applies committed commands, publishes the state for readers, builds and
//! installs snapshots.

mod backup;
mod checkpoints;
mod core;
mod database;
mod drafts;
mod inspect;
#[cfg(test)]
mod interleavings;
mod ledger;
mod lock;
mod outcomes;
mod pack;
mod snapshot_dir;
mod snapshot_file;
mod snapshot_format;
mod views;
mod waiters;
mod write_behind;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Weak};

use futures::{Stream, StreamExt};
use openraft::OptionalSend;
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use rocksdb::DB;

use self::core::Core;
use crate::base::Base;
use crate::error::Result;
use crate::types::{LogId, Payload, SnapshotMeta, StoredMembership, TypeConfig};
use placement_base::runtime;

pub use self::core::applying;
pub use backup::{BackupInfo, check_backup, imported, receive_backup};
pub(crate) use backup::{backup_time, put_in_place, read_backup};
pub use checkpoints::Checkpoints;
#[cfg(test)]
pub(crate) use database::AppliedRecord;
pub(crate) use database::{FAMILIES, StateDatabase};
pub use drafts::Drafts;
pub(crate) use inspect::snapshots;
pub use inspect::{SnapshotPart, TablePart};
#[cfg(test)]
pub(crate) use ledger::LedgerRecord;
pub use ledger::{Floor, Ledger, LedgerError};
pub use outcomes::{Committed, Expected};
pub use snapshot_dir::SnapshotDir;
pub use snapshot_file::{Snapshot, SnapshotData, SnapshotFile, SnapshotReceiver};
pub use snapshot_format::{SnapshotError, write as write_backup};
pub(crate) use snapshot_format::{check_history, read_frame, write_record};
pub use views::{AppliedState, Views};
pub use waiters::Stopped;

/// Maximum number of entries applied in one batch.
const BATCH_ENTRIES: usize = 512;
/// Approximate maximum bytes of the commands applied in one batch: the changes of a batch stay in
/// memory until they are written.
const BATCH_BYTES: usize = 1 << 20;

/// The state machine for openraft.
pub struct StateMachine {
    core: Arc<Core>,
}

impl StateMachine {
    pub(crate) fn open(base: &Arc<Base>, snapshots: SnapshotDir) -> Result<Self> {
        let core = Arc::new(Core::open(base, snapshots)?);
        Ok(Self { core })
    }

    pub(crate) fn database(&self) -> Weak<DB> {
        Arc::downgrade(&self.core.database.rocks.db)
    }

    pub(crate) fn drafts(&self) -> Drafts {
        let core = Arc::downgrade(&self.core);
        Drafts { core }
    }

    pub(crate) fn ledger(&self) -> Ledger {
        self.core.ledger()
    }

    pub(crate) fn views(&self) -> Views {
        self.core.views().clone()
    }

    async fn apply_batch(&self, batch: Vec<EntryResponder<TypeConfig>>) -> io::Result<()> {
        let core = Arc::clone(&self.core);
        // Long work on one of Raft's threads would delay heartbeats.
        let too_much_waits = if core.is_cheap(&batch) {
            core.apply(batch)?
        } else {
            runtime::blocking(move || core.apply(batch)).await?
        };
        if too_much_waits {
            let core = Arc::clone(&self.core);
            runtime::blocking(move || core.write_rows()).await?;
        }
        Ok(())
    }
}

/// Takes the first entries, up to about [`BATCH_BYTES`] of commands but at least one. `None` if
/// `entries` is empty.
fn first_of(
    entries: &mut VecDeque<EntryResponder<TypeConfig>>,
) -> Option<Vec<EntryResponder<TypeConfig>>> {
    let mut bytes = 0;
    let count = entries
        .iter()
        .take_while(|(entry, _)| {
            let is_in = bytes < BATCH_BYTES;
            if let Payload::Normal(logged) = &entry.payload {
                bytes += logged.record().0.len();
            }
            is_in
        })
        .count();
    (count > 0).then(|| entries.drain(..count).collect())
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotData = SnapshotData;
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        let applied = self.core.current();
        Ok((applied.last, applied.membership.as_ref().clone()))
    }

    async fn apply<S>(&mut self, entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        let mut batches = entries.ready_chunks(BATCH_ENTRIES);
        while let Some(batch) = batches.next().await {
            let mut batch = batch.into_iter().collect::<io::Result<VecDeque<_>>>()?;
            while let Some(next) = first_of(&mut batch) {
                self.apply_batch(next).await?;
            }
        }
        Ok(())
    }

    /// openraft treats every error of a builder as a broken disk and stops the node. So, unless
    /// `force` is set, a builder only returns the state that [`Drafts`] has already made durable.
    async fn try_create_snapshot_builder(&mut self, force: bool) -> Option<SnapshotBuilder> {
        if force {
            return Some(self.get_snapshot_builder().await);
        }
        let covered = Some(self.core.take_covered()?);
        let core = Arc::clone(&self.core);
        Some(SnapshotBuilder { core, covered })
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        let (core, covered) = (Arc::clone(&self.core), None);
        SnapshotBuilder { core, covered }
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: SnapshotData,
    ) -> Result<(), io::Error> {
        let (core, meta) = (Arc::clone(&self.core), meta.clone());
        runtime::blocking(move || {
            let file = match snapshot {
                SnapshotData::File(file) => file,
                SnapshotData::State(applied) => core.write_down(&applied)?,
            };
            core.install(&meta, &file)
        })
        .await
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        Ok(self.core.snapshot())
    }
}

/// Returns one snapshot to openraft while the state machine continues.
pub struct SnapshotBuilder {
    core: Arc<Core>,
    /// A state with durable rows. Without one, the builder makes the current state durable.
    covered: Option<Arc<AppliedState>>,
}

impl RaftSnapshotBuilder<TypeConfig> for SnapshotBuilder {
    type SnapshotData = SnapshotData;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        let applied = match self.covered.take() {
            Some(applied) => applied,
            None => {
                let core = Arc::clone(&self.core);
                runtime::blocking(move || core.cover()).await?
            }
        };
        Ok(applied.to_snapshot())
    }
}
