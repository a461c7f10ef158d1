//! A node that is a member of a cluster: what it knows, and the owners of what it does.

use std::sync::Arc;

use placement_model::Command;
use placement_raft_store::{Drafts, SnapshotDir, StoreMetrics};
use tokio::time::Instant;

use super::deeds::Deeds;
use super::error::Refused;
use super::kept_backups::Kept;
use super::own_past::OwnPast;
use super::read_index::ReadIndex;
use super::replica::Replica;
use super::standards::Standards;
use super::wall_time::WallTime;
use super::write_path::WritePath;
use crate::disk_space::Room;
use crate::rpc::peers::Peers;
use crate::rpc::snapshots::Sending;

/// What a running member is made of.
pub(crate) struct Running {
    pub(crate) replica: Arc<Replica>,
    pub(crate) writes: WritePath,
    pub(crate) read_index: Arc<ReadIndex>,
    pub(crate) standards: Standards,
    pub(crate) store_metrics: StoreMetrics,
    pub(crate) kept: Kept,
    pub(super) room: Room,
    pub(super) snapshots: SnapshotDir,
    pub(super) drafts: Drafts,
    pub(super) sending: Arc<Sending>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) wall: Arc<WallTime>,
    pub(super) past: Arc<OwnPast>,
    pub(super) deeds: Arc<dyn Deeds>,
}

impl Running {
    /// Which start of this node this is, as long as it does not know that there was no later one.
    pub(super) fn unsure_of_start(&self) -> Option<u64> {
        self.past.unsure()
    }

    /// What other nodes have written can be read only by a newer binary: this node cannot follow
    /// the log any more, and says so rather than have the others try for ever.
    pub(super) fn outgrown(&self, by: u64, error: impl std::fmt::Display) {
        self.replica.health.report(&format!(
            "node {by} sends what this one cannot read ({error}): start a binary here that is at \
             least as new as the one that wrote it, such as the one that node {by} runs"
        ));
    }

    /// Waits until all that was acknowledged anywhere before now is applied here.
    pub(super) async fn linearize(&self) -> Result<(), Refused> {
        let deadline = Instant::now() + self.replica.config.wait();
        let applied = self.read_index.linearize(deadline).await;
        applied.map_err(Refused::from)
    }

    /// Has a command committed, and applied here. `what` names it in the log.
    pub(super) async fn carry_out(&self, command: Command, what: &str) -> Result<(), Refused> {
        let deadline = Instant::now() + self.replica.config.wait();
        let committed = self.writes.commit(command, what.to_owned(), deadline).await;
        let index = committed?.index;
        let applied = self.replica.apply_up_to(index, deadline).await;
        applied.map_err(Refused::from)
    }

    /// Stops Raft; the disk is closed soon after.
    pub(crate) async fn stop(&self) {
        if let Err(error) = self.replica.raft.shutdown().await {
            tracing::warn!(%error, "replication did not stop cleanly");
        }
    }
}
