//! The leader's end of a write: stamped in the order of the log, proposed in batches.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use openraft::ServerState;
use openraft::errors::ClientWriteError;
use openraft::raft::WriteResult;
use placement_model::mutant;
use placement_model::{Command, Stamped};
use placement_raft_store::coverage::RarePath;
use placement_raft_store::{Applied, LoggedCommand, TypeConfig};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tracing::Instrument;

use super::backlog::Place;
use super::replica::Replica;
use super::stamp::Stamper;
use super::wall_time::WallTime;
use crate::rpc::message::{WriteCall, WriteReply};
use crate::tasks::Tasks;

/// Most writes in one batch.
const BATCH_MAX: usize = 512;
/// How long a new leader waits to know the stamps of the leaders before it.
const SETTLE: Duration = Duration::from_secs(1);
/// What is said of a leader that does not know them.
const UNSETTLED: &str = "the leader has not applied yet what the leaders before it wrote";

/// A write for the leader.
pub(super) struct Proposal {
    pub(super) call: WriteCall,
    /// What the call says.
    pub(super) command: Command,
    /// When its client waits no more.
    pub(super) deadline: Instant,
    /// Held until it is answered.
    pub(super) place: Place,
    /// Where it is committed, or why not.
    pub(super) answer: oneshot::Sender<Result<u64, WriteReply>>,
}

/// Takes proposals one after the other.
pub(super) struct Proposer {
    replica: Arc<Replica>,
    wall: Arc<WallTime>,
    stamper: Stamper,
    tasks: Tasks,
    /// The term for which the stamps of all leaders before are known.
    settled: u64,
}

impl Proposer {
    pub(super) fn new(replica: Arc<Replica>, wall: Arc<WallTime>, tasks: Tasks) -> Self {
        Self {
            replica,
            wall,
            stamper: Stamper::default(),
            tasks,
            settled: 0,
        }
    }

    pub(super) async fn run(mut self, mut queue: mpsc::UnboundedReceiver<Proposal>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while queue.recv_many(&mut batch, BATCH_MAX).await > 0 {
            // Of a proposal whose caller has given up nothing is lost by not proposing it.
            batch.retain(|proposal| !proposal.answer.is_closed());
            let now = Instant::now();
            let late = batch.extract_if(.., |proposal| proposal.deadline <= now);
            reject(late, "its time was over before its turn came");
            if let Some(failure) = self.replica.failure() {
                reject(batch.drain(..), &failure);
            } else if let Err(reason) = self.settle().await {
                reject(batch.drain(..), reason);
            } else {
                self.propose(batch.drain(..)).await;
            }
        }
    }

    async fn propose(&mut self, batch: impl Iterator<Item = Proposal>) {
        let mut applied = self.replica.views.current().last_stamp;
        if mutant!("stamp-by-the-clock") {
            applied = None;
        }
        let now = self.wall.now();
        let mut waiting = Vec::new();
        let mut commands = Vec::new();
        for proposal in batch {
            let Proposal {
                call,
                command,
                place,
                answer,
                ..
            } = proposal;
            // Apply knows a write by the number it has in the log; here both names stand together.
            let span = tracing::debug_span!(
                "propose",
                request_id = %call.request_id,
                origin = call.request.origin,
                boot = call.request.boot,
                sequence = call.request.sequence,
            );
            let stamped = Stamped {
                at: self.stamper.stamp(now, applied),
                request: Some(call.request),
                command,
                partition: call.destination.partition,
                routes: call.destination.routes,
            };
            commands.push(LoggedCommand::new(stamped, call.command));
            waiting.push((answer, span, place));
        }
        if commands.is_empty() {
            return;
        }
        let results = match self.replica.raft.client_write_many(commands).await {
            Ok(results) => results,
            Err(fatal) => {
                for (answer, _, _) in waiting {
                    let reason = format!("replication has stopped on this node: {fatal}");
                    // The asker may be gone.
                    let _ = answer.send(Err(WriteReply::Rejected { reason }));
                }
                return;
            }
        };
        self.tasks.spawn(async move {
            // It ends early when replication stops, and is asked once for each that waits.
            let mut results = results.fuse();
            for (answer, span, place) in waiting {
                let proposed = async {
                    let proposed = match results.next().await {
                        Some(Ok(result)) => committed(result),
                        Some(Err(fatal)) => {
                            Err(unknown(format!("replication has stopped: {fatal}")))
                        }
                        None => Err(unknown("replication has stopped".to_owned())),
                    };
                    if let Ok(index) = &proposed {
                        place.answered();
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

    /// Before the first stamp of a term: everything that earlier leaders stamped is applied, so that
    /// time never goes back in the log, however wrong a clock is. Without that nothing is proposed:
    /// a leader without a quorum could not commit it either.
    async fn settle(&mut self) -> Result<(), &'static str> {
        let (term, leads, last) = self.replica.raft_metrics(|metrics| {
            (
                metrics.current_term,
                metrics.state == ServerState::Leader,
                metrics.last_log_index,
            )
        });
        // A node that does not lead is told so when it proposes.
        if !leads || term == self.settled {
            return Ok(());
        }
        if let Some(last) = last {
            RarePath::ClockSettled.ran();
            timeout(SETTLE, self.replica.views.wait_applied(last))
                .await
                .map_err(|_| UNSETTLED)?
                .map_err(|_| UNSETTLED)?;
        }
        self.settled = term;
        Ok(())
    }
}

fn reject(batch: impl Iterator<Item = Proposal>, reason: &str) {
    for proposal in batch {
        let reason = reason.to_owned();
        let _ = proposal.answer.send(Err(WriteReply::Rejected { reason }));
    }
}

fn committed(result: WriteResult<TypeConfig>) -> Result<u64, WriteReply> {
    Err(match result {
        Ok(written) => match written.response {
            Applied::Outcome(_) => return Ok(written.log_id.index()),
            Applied::NoCommand => unknown("the log holds no command where it should".to_owned()),
        },
        Err(ClientWriteError::ForwardToLeader(forward)) => WriteReply::NotLeader {
            leader: forward.leader_id,
        },
        Err(error) => unknown(error.to_string()),
    })
}

fn unknown(reason: String) -> WriteReply {
    WriteReply::Unknown { reason }
}
