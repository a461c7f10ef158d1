//! The state for readers: immutable, published once per apply batch.

use std::sync::Arc;

use arc_swap::ArcSwap;
use placement_model::Cluster;
use placement_model::command::WriteId;
use placement_model::mutant;
use placement_model::state::Digest;
use placement_model::types::Timestamp;
use tokio::sync::watch;

use super::checkpoints::Checkpoints;
use super::outcomes::{Expected, Outcomes};
use super::waiters::{Stopped, Waiters};
use crate::types::{LogId, SnapshotMeta, StoredMembership};
use crate::wire::RecordVersion;

/// The state after a log entry. Old states need little memory: states share unchanged parts.
#[derive(Debug, Clone, Default)]
pub struct AppliedState {
    /// All partitions. In its own `Arc`, so that a reader can keep it without the other fields.
    pub cluster: Arc<Cluster>,
    /// The last entry it contains; `None` on a node that has applied nothing.
    pub last: Option<LogId>,
    /// The membership as of that entry.
    pub membership: Arc<StoredMembership>,
    /// The greatest timestamp of all commands up to that entry: a leader stamps its next command
    /// with a later one. `None` before the first command.
    pub last_stamp: Option<Timestamp>,
}

impl AppliedState {
    /// The index of the last entry it contains.
    pub fn index(&self) -> Option<u64> {
        self.last.as_ref().map(|id| id.index())
    }

    /// Coverage of a snapshot of this state.
    pub(super) fn covers(&self) -> SnapshotMeta {
        SnapshotMeta {
            last_log_id: self.last,
            last_membership: self.membership.as_ref().clone(),
        }
    }

    /// The record version that is used with this state and with later ones.
    pub fn record_version(&self) -> RecordVersion {
        RecordVersion::for_level(self.cluster.level())
    }

    /// Digest of the state: equal on all nodes at an equal index.
    pub fn digest(&self) -> Digest {
        self.cluster.digest()
    }
}

/// The applied state of this node. Cheap to clone; does not keep the database open.
#[derive(Debug, Clone)]
pub struct Views {
    current: Arc<ArcSwap<AppliedState>>,
    index: watch::Receiver<Option<u64>>,
    waiters: Waiters<u64, ()>,
    /// Waiters for the outcomes of commands.
    pub(super) outcomes: Outcomes,
    checkpoints: Checkpoints,
}

impl Views {
    /// The state after everything that this node has applied so far.
    pub fn current(&self) -> Arc<AppliedState> {
        self.current.load_full()
    }

    /// The index of the last applied entry.
    pub fn applied_index(&self) -> Option<u64> {
        *self.index.borrow()
    }

    /// Waits until the entry at `index` is applied, and returns a state that contains it. There is
    /// no timeout.
    ///
    /// # Errors
    /// [`Stopped`] if this node stops before that.
    pub async fn wait_applied(&self, index: u64) -> Result<Arc<AppliedState>, Stopped> {
        let is_applied = || self.applied_index() >= Some(index);
        self.waiters.wait(index, is_applied).await?;
        let current = self.current();
        assert!(
            current.index() >= Some(index),
            "the state is published before its index, but at {index} it was {:?}",
            current.index()
        );
        Ok(current)
    }

    /// Registers a waiter for the outcome of a command with one of this node's write ids.
    ///
    /// # Errors
    /// [`Stopped`] if this node applies no further entries.
    pub fn expect(&self, id: &WriteId) -> Result<Expected, Stopped> {
        self.outcomes.expect(id)
    }

    /// Registers the waiter again if it can no longer get an answer, because a snapshot replaced
    /// the log up to its command. The caller must propose the command again; it is then answered
    /// from the state.
    ///
    /// # Errors
    /// [`Stopped`] if this node applies no further entries.
    pub fn renew(&self, expected: &mut Expected, id: &WriteId) -> Result<(), Stopped> {
        if expected.is_over() {
            *expected = self.expect(id)?;
        }
        Ok(())
    }

    /// Digests of this node, to compare with those of other nodes.
    pub fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }

    /// Watches the applied index.
    pub fn subscribe(&self) -> watch::Receiver<Option<u64>> {
        self.index.clone()
    }
}

/// Publishes the states that [`Views`] return.
#[derive(Debug)]
pub(crate) struct Publisher {
    views: Views,
    index: watch::Sender<Option<u64>>,
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.views.waiters.close();
        self.views.outcomes.close();
    }
}

impl Publisher {
    pub(crate) fn new(first: AppliedState) -> Self {
        let (index, watched) = watch::channel(first.index());
        let views = Views {
            current: Arc::new(ArcSwap::from_pointee(first)),
            index: watched,
            waiters: Waiters::default(),
            outcomes: Outcomes::default(),
            checkpoints: Checkpoints::default(),
        };
        Self { views, index }
    }

    pub(crate) fn views(&self) -> &Views {
        &self.views
    }

    /// Publishes the state before the index: a reader woken by the index finds the state.
    pub(crate) fn publish(&self, next: AppliedState) {
        let index = next.index();
        let before = self.views.current().index();
        assert!(
            before <= index || mutant!("older-snapshot-returns"),
            "the published state never goes back, but {index:?} follows {before:?}"
        );
        self.views.current.store(Arc::new(next));
        self.index.send_replace(index);
        if let Some(index) = index {
            self.views.waiters.wake(index);
        }
    }
}
