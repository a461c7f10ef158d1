//! A node that is a member of a cluster: what it knows, and the owners of what it does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use placement_model::Command;
use placement_raft_store::{Drafts, SnapshotDir, StoreMetrics, runtime};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::error::Refused;
use super::internal_actions::ActionLog;
use super::kept_backups::Kept;
use super::read::index::ReadIndex;
use super::replica::Replica;
use super::standards::Standards;
use super::write::own_past::OwnPast;
use super::write::path::WritePath;
use super::write::proposals::Proposals;
use super::write::wall_time::WallTime;
use crate::disk_space::{self, Room};
use crate::rpc::channel::Lane;
use crate::rpc::message::Method;
use crate::rpc::peers::Peers;
use crate::rpc::snapshots::Sending;

/// How long another node may take to answer.
const CALL: Duration = Duration::from_secs(1);

/// What a running member is made of.
pub(crate) struct Running {
    pub(crate) replica: Arc<Replica>,
    pub(crate) writes: WritePath,
    pub(crate) proposals: Arc<Proposals>,
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
    pub(super) actions: Arc<dyn ActionLog>,
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
        let committed = self.writes.commit(command, what.to_owned()).await;
        committed.map(drop).map_err(Refused::from)
    }

    /// Whether this node's disk has less room than `[disk] min_free_bytes`.
    pub(super) async fn is_short_of_room(&self) -> bool {
        let config = &self.replica.config;
        if config.disk.min_free_bytes == 0 {
            return false;
        }
        let dir = config.data_dir.clone();
        let free = runtime::blocking(move || disk_space::free(&dir)).await;
        // A system that does not say has no limit that could be held.
        free.is_some_and(|free| free < config.disk.min_free_bytes)
    }

    /// Asks members one after the other; what those say that answer.
    pub(super) async fn ask<A: DeserializeOwned>(
        &self,
        nodes: impl IntoIterator<Item = u64>,
        method: Method,
        question: &(impl Serialize + Sync),
    ) -> BTreeMap<u64, A> {
        let members = self.replica.members();
        let mut answers = BTreeMap::new();
        for id in nodes {
            let Some(member) = members.get(&id) else {
                continue;
            };
            let to = (id, member.peer.as_str());
            let call = (self.peers).call(to, Lane::Control, method, question, CALL);
            if let Ok(answer) = call.await {
                answers.insert(id, answer);
            }
        }
        answers
    }

    /// Stops Raft; the disk is closed soon after.
    pub(crate) async fn stop(&self) {
        if let Err(error) = self.replica.raft.shutdown().await {
            tracing::warn!(%error, "replication did not stop cleanly");
        }
    }
}
