//! The read door. What each consistency promises, and how the promise is kept:
//!
//! * linearizable: the leader is asked, after the request came in, how far it has committed, and
//!   proves to a quorum that it still leads; this node then waits until it has applied as far. One
//!   such round is under way per node; who comes later shares the next.
//! * session: this node waits until it has applied the client's token.
//! * bounded: a state that was complete recently enough is answered at once, else as linearizable.
//! * local: this node's state as it is.
//!
//! Nothing is answered before the state has all standard names of this binary (`standards.rs`).
//!
//! Leases are not used: a restarted follower has forgotten the lease it granted.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use openraft::ReadPolicy;
use openraft::errors::{LinearizableReadError, RaftError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::group::{Group, Leader};
use super::removal::REMOVED;
use super::seat::Seat;
use super::submit::RETRY_AFTER;
use crate::doors::{Consistency, PlacementIndex, ReadDoor, Standing, Unavailable, View};
use crate::rpc::channel::Lane;
use crate::rpc::message::{Method, ReadIndexReply};

/// How long to wait before the same leader is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// The door for reads of one node.
pub(crate) struct Read {
    seat: Arc<Seat>,
}

impl Read {
    pub(crate) fn new(seat: Arc<Seat>) -> Self {
        Self { seat }
    }

    async fn promise(&self, consistency: Consistency) -> Result<View, Unavailable> {
        let deadline = Instant::now() + self.seat.wait();
        let group = self.seat.group(deadline).await?;
        group.wait_for_standards(deadline).await?;
        match consistency {
            Consistency::Local => {}
            Consistency::Linearizable => group.linearize(deadline).await?,
            Consistency::Session(token) => group.reach(token, deadline).await?,
            Consistency::Bounded(bound) => loop {
                if group.freshness.staleness().is_some_and(|age| age <= bound) {
                    break;
                }
                group.linearize(deadline).await?;
                if bound.is_zero() {
                    // No answer is that fresh; a linearizable one is meant.
                    break;
                }
                if Instant::now() >= deadline {
                    return Err(nothing(format!("no answer that is at most {bound:?} old")));
                }
            },
        }
        Ok(group.view())
    }
}

impl ReadDoor for Read {
    fn view(&self, consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>> {
        Box::pin(self.promise(consistency))
    }

    fn standing(&self) -> Standing {
        self.seat.standing()
    }
}

impl Group {
    /// Waits until this node has applied all that was acknowledged anywhere before now.
    pub(crate) async fn linearize(&self, deadline: Instant) -> Result<(), Unavailable> {
        if self.is_removed() {
            return Err(nothing(REMOVED.to_owned()));
        }
        let (answer, asked) = oneshot::channel();
        let round = Round { answer, deadline };
        if self.rounds.send(round).is_err() {
            return Err(nothing("this node is stopping".to_owned()));
        }
        let point = match timeout_at(deadline, asked).await {
            Ok(Ok(Ok(point))) => point,
            Ok(Ok(Err(reason))) => return Err(nothing(reason)),
            Ok(Err(_)) => return Err(nothing("this node is stopping".to_owned())),
            Err(_) => return Err(nothing(self.without_leader())),
        };
        self.apply_up_to(point.index, deadline).await?;
        self.freshness.confirm(point.asked);
        Ok(())
    }

    /// Waits until this node has applied a client's token.
    async fn reach(&self, token: PlacementIndex, deadline: Instant) -> Result<(), Unavailable> {
        if token.epoch != self.identity.epoch {
            return Err(Unavailable::ForeignIndex {
                epoch: self.identity.epoch,
            });
        }
        self.apply_up_to(token.index, deadline).await
    }

    pub(super) async fn apply_up_to(
        &self,
        index: u64,
        deadline: Instant,
    ) -> Result<(), Unavailable> {
        match timeout_at(deadline, self.views.wait_applied(index)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(stopped)) => Err(nothing(stopped.to_string())),
            Err(_) => Err(nothing(format!(
                "this node has applied {} and did not come to {index} in time",
                self.views.applied_index().unwrap_or(0)
            ))),
        }
    }

    pub(super) fn without_leader(&self) -> String {
        match self.failure() {
            Some(failure) => format!("this node takes no part any more: {failure}"),
            None if self.is_removed() => REMOVED.to_owned(),
            None => match self.leader() {
                Some(leader) => {
                    format!(
                        "the leader, node {}, did not confirm in time that it leads",
                        leader.id
                    )
                }
                None => "no leader is known".to_owned(),
            },
        }
    }

    /// As the leader: how far a read that is asked for now must be.
    pub(crate) async fn read_index(&self) -> ReadIndexReply {
        match self.raft.get_read_log_id(ReadPolicy::ReadIndex).await {
            Ok((read, _)) => ReadIndexReply::At {
                index: read.log_id().index(),
            },
            Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(forward))) => {
                ReadIndexReply::NotLeader {
                    leader: forward.leader_id,
                }
            }
            Err(error) => ReadIndexReply::Unconfirmed {
                reason: error.to_string(),
            },
        }
    }
}

fn nothing(reason: String) -> Unavailable {
    Unavailable::NothingCommitted {
        reason,
        retry_after: RETRY_AFTER,
    }
}

/// One read that waits for a round.
pub(crate) struct Round {
    answer: oneshot::Sender<Result<ReadPoint, String>>,
    deadline: Instant,
}

/// A state at `index` has all that was acknowledged before `asked`.
#[derive(Debug, Clone, Copy)]
struct ReadPoint {
    asked: Instant,
    index: u64,
}

/// Asks the leader, for all reads that wait when a round begins.
pub(crate) struct Rounds {
    group: Arc<Group>,
}

impl Rounds {
    pub(crate) fn new(group: Arc<Group>) -> Self {
        Self { group }
    }

    pub(crate) async fn run(self, mut queue: mpsc::UnboundedReceiver<Round>) {
        let mut waiting: Vec<Round> = Vec::new();
        loop {
            if waiting.is_empty() {
                match queue.recv().await {
                    Some(round) => waiting.push(round),
                    None => return,
                }
            }
            while let Ok(round) = queue.try_recv() {
                waiting.push(round);
            }
            waiting.retain(|round| !round.answer.is_closed());
            let Some(latest) = waiting.iter().map(|round| round.deadline).max() else {
                continue;
            };
            let asked = Instant::now();
            match self.ask(latest).await {
                Ok(index) => {
                    self.group
                        .read_metrics
                        .round(waiting.len(), asked.elapsed());
                    for round in waiting.drain(..) {
                        // Who has given up needs no answer.
                        let _ = round.answer.send(Ok(ReadPoint { asked, index }));
                    }
                }
                Err(reason) => {
                    self.group.read_metrics.failed();
                    self.expire(&mut waiting, &reason);
                }
            }
        }
    }

    /// Tells those whose time is up why; the others wait for the next round.
    fn expire(&self, waiting: &mut Vec<Round>, reason: &str) {
        let now = Instant::now();
        let (expired, left) = waiting.drain(..).partition(|round| round.deadline <= now);
        *waiting = left;
        let expired: Vec<Round> = expired;
        for round in expired {
            let _ = round.answer.send(Err(reason.to_owned()));
        }
    }

    /// One question to whoever leads. Waits a little before it says that nobody answers.
    async fn ask(&self, latest: Instant) -> Result<u64, String> {
        let group = &self.group;
        if let Some(failure) = group.failure() {
            tokio::time::sleep(PAUSE).await;
            return Err(format!("this node takes no part any more: {failure}"));
        }
        let Some(leader) = group.leader() else {
            group.other_leader(None, latest).await;
            return Err("no leader is known".to_owned());
        };
        // A quorum that is there answers a heartbeat; one that is not is asked again.
        let patience = Duration::from_millis(group.config.raft.election_min_ms);
        let reply = tokio::select! {
            biased;
            reply = self.ask_leader(&leader, patience) => reply,
            () = group.other_leader(Some(leader.id), Instant::now() + patience * 2) => {
                Err(format!("node {} leads no more", leader.id))
            }
        };
        let reason = match reply {
            Ok(ReadIndexReply::At { index }) => return Ok(index),
            Ok(ReadIndexReply::NotLeader { .. }) => {
                format!(
                    "node {} leads no more, and no other leader is known",
                    leader.id
                )
            }
            Ok(ReadIndexReply::Removed) => {
                group.note_removed(true);
                REMOVED.to_owned()
            }
            Ok(ReadIndexReply::Unconfirmed { reason }) | Err(reason) => reason,
        };
        group
            .other_leader(Some(leader.id), Instant::now() + PAUSE)
            .await;
        Err(reason)
    }

    async fn ask_leader(
        &self,
        leader: &Leader,
        patience: Duration,
    ) -> Result<ReadIndexReply, String> {
        let group = &self.group;
        if leader.id == group.me {
            return timeout(patience, group.read_index())
                .await
                .map_err(|_| "no quorum confirmed in time that this node leads".to_owned());
        }
        let to = (leader.id, leader.address.as_str());
        group
            .peers
            .call(to, Lane::Control, Method::ReadIndex, &(), patience)
            .await
            .map_err(|error| format!("the leader, node {}: {error}", leader.id))
    }
}
