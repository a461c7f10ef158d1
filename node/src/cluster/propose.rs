//! The leader's end of a write: stamped in the order of the log, proposed in groups.

use std::time::Duration;

use futures::StreamExt;
use openraft::ServerState;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::errors::ClientWriteError;
use openraft::raft::WriteResult;
use placement_model::command::RequestId;
use placement_model::{Command, Outcome, Stamped};
use placement_raft_store::{Applied, Health, Raft, TypeConfig, Views};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tracing::Instrument;

use super::group::Stamper;
use crate::tasks::Tasks;

/// Most writes in one group.
const GROUP_MAX: usize = 512;
/// How long a new leader waits to know the stamps of the leaders before it.
const SETTLE: Duration = Duration::from_secs(1);

/// A write for the leader.
pub(crate) struct Proposal {
    pub(crate) request: Option<RequestId>,
    pub(crate) request_id: String,
    pub(crate) command: Command,
    pub(crate) answer: oneshot::Sender<Proposed>,
}

/// What became of a proposal.
#[derive(Debug, Clone)]
pub(crate) enum Proposed {
    /// Committed, and applied by this node.
    Written { index: u64, outcome: Outcome },
    /// It never entered the log: another node leads.
    NotLeader { leader: Option<u64> },
    /// It never entered the log: this node cannot take it.
    Rejected { reason: String },
    /// It entered the log of this node, and perhaps no other's.
    Unknown { reason: String },
}

/// Takes proposals one after the other.
pub(crate) struct Proposer {
    raft: Raft,
    views: Views,
    health: Health,
    stamper: Stamper,
    tasks: Tasks,
    /// The term for which the stamps of all leaders before are known.
    settled: u64,
}

impl Proposer {
    pub(crate) fn new(
        raft: Raft,
        views: Views,
        health: Health,
        stamper: Stamper,
        tasks: Tasks,
    ) -> Self {
        Self {
            raft,
            views,
            health,
            stamper,
            tasks,
            settled: 0,
        }
    }

    pub(crate) async fn run(mut self, mut queue: mpsc::UnboundedReceiver<Proposal>) {
        let mut group = Vec::with_capacity(GROUP_MAX);
        while queue.recv_many(&mut group, GROUP_MAX).await > 0 {
            // Whoever asked may have given up: then nobody learns the outcome, and nothing is lost
            // by not proposing at all.
            group.retain(|proposal| !proposal.answer.is_closed());
            if let Some(failure) = self.health.failure() {
                reject(group.drain(..), &failure);
                continue;
            }
            self.settle().await;
            self.propose(group.drain(..)).await;
        }
    }

    async fn propose(&mut self, group: impl Iterator<Item = Proposal>) {
        let mut waiting = Vec::new();
        let mut commands = Vec::new();
        let applied = self.views.current().last_stamp;
        for proposal in group {
            // Apply knows a write by the number it has in the log; here both names stand together.
            let span = tracing::info_span!(
                "propose",
                request_id = %proposal.request_id,
                origin = proposal.request.map(|request| request.origin),
                boot = proposal.request.map(|request| request.boot),
                sequence = proposal.request.map(|request| request.sequence),
            );
            commands.push(Stamped {
                at: self.stamper.stamp(applied),
                request: proposal.request,
                command: proposal.command,
            });
            waiting.push((proposal.answer, span));
        }
        if commands.is_empty() {
            return;
        }
        let results = match self.raft.client_write_many(commands).await {
            Ok(results) => results,
            Err(fatal) => {
                for (answer, _) in waiting {
                    let reason = format!("replication has stopped on this node: {fatal}");
                    // The asker may be gone.
                    let _ = answer.send(Proposed::Rejected { reason });
                }
                return;
            }
        };
        self.tasks.spawn(async move {
            let mut results = results;
            for (answer, span) in waiting {
                let proposed = async {
                    let proposed = match results.next().await {
                        Some(Ok(result)) => outcome(result),
                        Some(Err(fatal)) => unknown(format!("replication has stopped: {fatal}")),
                        None => unknown("replication has stopped".to_owned()),
                    };
                    if let Proposed::Written { index, .. } = &proposed {
                        tracing::debug!(index, "applied");
                    }
                    proposed
                }
                .instrument(span)
                .await;
                let _ = answer.send(proposed);
            }
        });
    }

    /// Before the first stamp of a term: everything that earlier leaders stamped is applied, so
    /// that time never goes back in the log, however wrong a clock is.
    async fn settle(&mut self) {
        let (term, leads, last) = {
            let receiver = self.raft.metrics();
            let metrics = receiver.borrow_watched();
            (
                metrics.current_term,
                metrics.state == ServerState::Leader,
                metrics.last_log_index,
            )
        };
        if !leads || term == self.settled {
            return;
        }
        if let Some(last) = last
            && timeout(SETTLE, self.views.wait_applied(last))
                .await
                .is_err()
        {
            // Without a quorum nothing is applied, and nothing will be committed either.
            return;
        }
        self.settled = term;
    }
}

fn reject(group: impl Iterator<Item = Proposal>, failure: &str) {
    for proposal in group {
        let reason = failure.to_owned();
        let _ = proposal.answer.send(Proposed::Rejected { reason });
    }
}

fn outcome(result: WriteResult<TypeConfig>) -> Proposed {
    match result {
        Ok(written) => match written.response {
            Applied::Outcome(outcome) => Proposed::Written {
                index: written.log_id.index(),
                outcome,
            },
            Applied::NoCommand => unknown("the log holds no command where it should".to_owned()),
        },
        Err(ClientWriteError::ForwardToLeader(forward)) => Proposed::NotLeader {
            leader: forward.leader_id,
        },
        Err(error) => unknown(error.to_string()),
    }
}

fn unknown(reason: String) -> Proposed {
    Proposed::Unknown { reason }
}
