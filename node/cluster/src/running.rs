//! A node that is a member of a cluster: its state, and the parts that its tasks share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use placement_base::coverage::RarePath;
use placement_model::Command;
use placement_model::command::SyncStandards;
use placement_raft_store::{Drafts, SnapshotDir, StoreMetrics};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OnceCell, oneshot};
use tokio::time::Instant;
use tracing::Span;

use super::backlog::{Backlog, Permit};
use super::error::Refused;
use super::freshness::Moment;
use super::internal_actions::ActionLog;
use super::kept_backups::KeptBackups;
use super::replica::Replica;
use super::write_ids::WriteIds;
use placement_base::backend::Unavailable;
use placement_base::log_messages::log;
use placement_base::world::Clock;
use placement_peer::raft::messages::{WriteCall, WriteReply};
use placement_peer::raft::peers::Peers;
use placement_peer::raft::snapshots::Sending;
use placement_peer::transport::method::Method;
use placement_peer::transport::reply::Forwarder;
use placement_raft_store::disk_space::{self, SpaceCheck};

/// Deadline for another node's answer.
const CALL: Duration = Duration::from_secs(1);

/// A write for this node to propose as the leader.
pub(crate) struct Proposal {
    pub(super) call: WriteCall,
    /// The decoded command of the call.
    pub(super) command: Command,
    /// When its client stops waiting.
    pub(super) deadline: Instant,
    /// Held until the write is answered.
    pub(super) permit: Permit,
    pub(super) asker: ProposalOrigin,
    pub(super) span: Span,
}

/// The recipient of a proposal's outcome.
pub(crate) enum ProposalOrigin {
    /// A request to this node.
    Here(oneshot::Sender<Result<(), WriteReply>>),
    There(Forwarder),
}

impl ProposalOrigin {
    /// Whether the recipient has stopped waiting.
    pub(super) fn has_given_up(&self) -> bool {
        match self {
            Self::Here(answer) => answer.is_closed(),
            Self::There(forwarder) => {
                let given_up = forwarder.has_given_up();
                if given_up {
                    RarePath::WriteGivenUp.ran();
                }
                given_up
            }
        }
    }

    /// Notes that the proposal is in the log.
    pub(super) fn proposed(&mut self) {
        if let Self::There(forwarder) = self {
            forwarder.proposed();
        }
    }

    /// Sends the outcome, if the recipient still waits.
    pub(super) fn answer(self, proposed: Result<(), WriteReply>) {
        match (self, proposed) {
            (Self::Here(answer), proposed) => drop(answer.send(proposed)),
            (Self::There(forwarder), Ok(())) => forwarder.committed(),
            (Self::There(forwarder), Err(refused)) => forwarder.refuse(Ok(&refused)),
        }
    }
}

/// Counters of the rounds in which reads are confirmed (`read/index.rs`).
#[derive(Debug, Default)]
pub struct ReadMetrics {
    pub rounds: AtomicU64,
    pub reads: AtomicU64,
    pub failures: AtomicU64,
    pub micros: AtomicU64,
}

impl ReadMetrics {
    /// Counts one round that served `reads` reads.
    pub(super) fn round(&self, reads: usize, took: Duration) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.reads.fetch_add(reads as u64, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }
}

/// A read that waits for the next round.
pub(crate) struct PendingRead {
    pub(super) answer: oneshot::Sender<Result<ReadPoint, String>>,
    pub(super) deadline: Instant,
}

/// A state at `index` contains everything acknowledged before `asked`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadPoint {
    pub(super) asked: Moment,
    pub(super) index: u64,
}

/// The parts of a running member.
pub struct Running {
    pub replica: Arc<Replica>,
    /// The standard resource classes and traits of this binary.
    pub(super) standards: SyncStandards,
    /// Set once this node's state has all standard names.
    pub(super) has_standards: AtomicBool,
    pub store_metrics: StoreMetrics,
    pub kept: KeptBackups,
    pub(super) room: SpaceCheck,
    pub(super) snapshots: SnapshotDir,
    pub(super) drafts: Drafts,
    pub(super) sending: Arc<Sending>,
    pub peers: Arc<Peers>,
    pub(super) actions: Arc<dyn ActionLog>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<WriteIds>,
    /// The number of the current start of this node.
    pub(super) start: u64,
    /// Set once this node knows that no later start of it has written.
    pub(super) is_latest_start: OnceCell<()>,
    /// Limits the number of writes that this node, as the leader, has accepted and not answered
    /// yet.
    pub(super) backlog: Backlog,
    /// Queue of the task that proposes writes.
    pub(super) proposals: UnboundedSender<Proposal>,
    /// Queue of the task that confirms reads.
    pub(super) reads: UnboundedSender<PendingRead>,
    pub(super) read_metrics: Arc<ReadMetrics>,
}

impl Running {
    /// Quarantines this node, because only a newer binary can read what node `by` sends. This node
    /// can no longer follow the log. While it is quarantined, it rejects Raft's calls and gives
    /// this reason.
    pub(super) fn report_unreadable_call(&self, by: u64, error: impl std::fmt::Display) {
        self.replica.health.report(&format!(
            "node {by} sends data that this node cannot read ({error}): start a version of \
            placementd here that is at least as new as the version of node {by}"
        ));
    }

    /// Waits until this node has applied everything that any node acknowledged before the call.
    pub(super) async fn catch_up(&self) -> Result<(), Unavailable> {
        let deadline = Instant::now() + self.replica.config.wait();
        self.linearize(deadline).await
    }

    /// Commits a command and waits until this node has applied it. `what` names the command in log
    /// lines.
    pub(super) async fn carry_out(&self, command: Command, what: &str) -> Result<(), Refused> {
        self.commit(command, what.to_owned()).await?;
        Ok(())
    }

    /// Whether this node's disk has less free space than `[disk] min_free_bytes`.
    pub(super) async fn is_disk_nearly_full(&self) -> bool {
        let config = &self.replica.config;
        if config.disk.min_free_bytes == 0 {
            return false;
        }
        let free = disk_space::free(&config.data_dir).await;
        // If the system does not report the free space, the disk never counts as nearly full.
        free.is_some_and(|free| free < config.disk.min_free_bytes)
    }

    /// Asks members one after another. Returns the answers of the reachable members.
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
            let call = (self.peers).call(id, &member.peer, method, question, CALL);
            if let Ok(answer) = call.await {
                answers.insert(id, answer);
            }
        }
        answers
    }

    /// Stops Raft. The store is closed soon after.
    pub async fn stop(&self) {
        if let Err(error) = self.replica.raft.shutdown().await {
            log!(REPLICATION_NOT_STOPPED, %error, "replication did not stop cleanly");
        }
    }
}
