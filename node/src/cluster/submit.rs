//! The write door: a command goes to whoever leads, under a number by which it is recognised, until
//! its outcome is known or the time is up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use placement_model::{Command, Outcome};
use placement_raft_store::wire;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use super::group::{Group, Leader};
use super::propose::{Proposal, Proposed};
use super::removal::REMOVED;
use super::seat::Seat;
use crate::doors::{Unavailable, WriteDoor, Written};
use crate::rpc::channel::Lane;
use crate::rpc::message::{Method, WriteCall, WriteReply};
use crate::rpc::peers::decode;

/// When a client that was turned away should come again.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long to wait before the same leader is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// The door for writes of one node.
pub(crate) struct Submit {
    seat: Arc<Seat>,
}

impl Submit {
    pub(crate) fn new(seat: Arc<Seat>) -> Self {
        Self { seat }
    }

    async fn write(&self, command: Command, request_id: String) -> Result<Written, Unavailable> {
        let begun = Instant::now();
        let deadline = begun + self.seat.wait();
        let group = self.seat.group(deadline).await?;
        // Once they are in the state of this node, they stand before this write in the log.
        group.wait_for_standards(deadline).await?;
        let ticket = group.tickets.issue();
        let call = WriteCall {
            request: ticket.request(),
            request_id,
            command,
        };
        let (index, outcome) = group.commit(call, deadline).await?;
        let applied = timeout_at(deadline, group.views.wait_applied(index)).await;
        if !matches!(applied, Ok(Ok(_))) {
            return Err(Unavailable::OutcomeUnknown {
                reason: format!(
                    "the write is committed at {index}, but this node has not come so far in time"
                ),
                retry_after: RETRY_AFTER,
            });
        }
        // All that was acknowledged before this write began stands before it in the log.
        group.freshness.confirm(begun);
        Ok(Written {
            outcome,
            index: group.place(index),
            view: group.view(),
        })
    }
}

impl WriteDoor for Submit {
    fn submit(
        &self,
        command: Command,
        request_id: String,
    ) -> BoxFuture<'_, Result<Written, Unavailable>> {
        let span = tracing::info_span!("submit", request_id = %request_id);
        Box::pin(self.write(command, request_id).instrument(span))
    }
}

impl Group {
    /// Has a write committed, once, by whoever leads.
    pub(super) async fn commit(
        &self,
        call: WriteCall,
        deadline: Instant,
    ) -> Result<(u64, Outcome), Unavailable> {
        // Why the write may be in a log already, if it may.
        let mut unsure: Option<String> = None;
        loop {
            if self.is_removed() {
                return Err(gave_up(unsure, REMOVED.to_owned()));
            }
            if let Some(failure) = self.failure() {
                return Err(gave_up(
                    unsure,
                    format!("this node cannot write: {failure}"),
                ));
            }
            let leader = self.leader();
            let target = leader.as_ref().map(|leader| leader.id);
            let answer = match leader {
                Some(leader) => self.ask(&leader, &call, deadline).await,
                None => Proposed::NotLeader { leader: None },
            };
            let why = match answer {
                Proposed::Written {
                    outcome: Outcome::AnsweredBefore,
                    ..
                } => {
                    let reason = "the cluster takes no more writes under this node's number";
                    return Err(gave_up(Some(reason.to_owned()), String::new()));
                }
                Proposed::Written { index, outcome } => return Ok((index, outcome)),
                Proposed::NotLeader { .. } => "no leader is known".to_owned(),
                Proposed::Rejected { reason } => reason,
                Proposed::Unknown { reason } => {
                    tracing::info!(reason, "the write's outcome is not known, asking again");
                    unsure = Some(reason.clone());
                    reason
                }
            };
            if Instant::now() >= deadline {
                return Err(gave_up(unsure, why));
            }
            let pause = (Instant::now() + PAUSE).min(deadline);
            match target {
                // Who was just asked may be about to step down, or to catch up.
                Some(_) => self.other_leader(target, pause).await,
                None => self.other_leader(None, deadline).await,
            }
        }
    }

    /// Asks one leader, until it answers, another one takes over, or the time is up.
    async fn ask(&self, leader: &Leader, call: &WriteCall, deadline: Instant) -> Proposed {
        let mut turns = self.turns();
        let superseded = async {
            loop {
                match self.leader() {
                    Some(other) if other.id != leader.id => return,
                    _ => turns.next().await,
                }
            }
        };
        let sent = AtomicBool::new(false);
        let reason = tokio::select! {
            biased;
            proposed = self.ask_until_answered(leader, call, deadline, &sent) => return proposed,
            () = superseded => format!("node {} was asked, but leads no more", leader.id),
            () = tokio::time::sleep_until(deadline) => {
                format!("the leader, node {}, did not answer in time", leader.id)
            }
        };
        match sent.into_inner() {
            true => Proposed::Unknown { reason },
            false => Proposed::Rejected { reason },
        }
    }

    async fn ask_until_answered(
        &self,
        leader: &Leader,
        call: &WriteCall,
        deadline: Instant,
        sent: &AtomicBool,
    ) -> Proposed {
        if leader.id == self.me {
            sent.store(true, Ordering::Relaxed);
            return self.propose(call.clone()).await;
        }
        let forward = async {
            let channel = self
                .peers
                .channel(leader.id, &leader.address, Lane::Forward)
                .await?;
            sent.store(true, Ordering::Relaxed);
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = channel
                .call(Method::Write, &wire::encode(call), left)
                .await?;
            decode(&answer)
        };
        let span =
            tracing::info_span!("forward", request_id = %call.request_id, leader = leader.id);
        match forward.instrument(span).await {
            Ok(WriteReply::Written { index, outcome }) => Proposed::Written { index, outcome },
            Ok(WriteReply::NotLeader { leader }) => Proposed::NotLeader { leader },
            Ok(WriteReply::Rejected { reason }) => Proposed::Rejected { reason },
            Ok(WriteReply::Unknown { reason }) => Proposed::Unknown { reason },
            Err(error) if error.is_without_effect() => Proposed::Rejected {
                reason: format!("the leader, node {}, cannot be reached: {error}", leader.id),
            },
            Err(error) => Proposed::Unknown {
                reason: format!("the leader, node {}, gave no answer: {error}", leader.id),
            },
        }
    }

    /// Proposes a write here, as the leader.
    pub(crate) async fn propose(&self, call: WriteCall) -> Proposed {
        let (answer, proposed) = oneshot::channel();
        let proposal = Proposal {
            request: Some(call.request),
            request_id: call.request_id,
            command: call.command,
            answer,
        };
        if self.proposals.send(proposal).is_err() {
            return Proposed::Rejected {
                reason: "this node is stopping".to_owned(),
            };
        }
        proposed.await.unwrap_or_else(|_| Proposed::Unknown {
            reason: "this node is stopping".to_owned(),
        })
    }
}

fn gave_up(unsure: Option<String>, reason: String) -> Unavailable {
    match unsure {
        Some(reason) => Unavailable::OutcomeUnknown {
            reason,
            retry_after: RETRY_AFTER,
        },
        None => Unavailable::NothingCommitted {
            reason,
            retry_after: RETRY_AFTER,
        },
    }
}
