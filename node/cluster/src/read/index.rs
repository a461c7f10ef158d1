//! The read index (Raft thesis, 6.4): the log index that a node must have applied so that a read
//! misses nothing that was acknowledged before the read was requested.
//!
//! After the read arrives, the node asks the leader for its commit index. The votes of a quorum
//! prove that the leader still leads ([`super::quorum`]). So the node asks the other voters for
//! their votes at the same time, unless the node and the leader are a quorum. If too few voters
//! answer, the leader asks them. openraft's own read index is not used, because with it a late
//! answer may confirm a later request. All this is one round. At most one round runs per node;
//! reads that arrive in the meantime share the next one.
//!
//! A node that is the only voter asks no other node, but still waits until it has applied all
//! committed entries: a learner may have applied, and acknowledged, a write that the voter has
//! committed but not applied yet.
//!
//! Leases are not used: a restarted follower has forgotten the lease that it granted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use openraft::RaftState;
use placement_base::coverage::RarePath;
use placement_model::mutant;
use placement_raft_store::TypeConfig;
use placement_raft_store::wire::WireVote;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::quorum;
use crate::replica::{Leader, REMOVED, Replica};
use crate::running::{PendingRead, ReadPoint, Running};
use placement_base::backend::Unavailable;
use placement_peer::raft::messages::CommitPoint;
use placement_peer::transport::channel::CallError;
use placement_peer::transport::method::Method;

/// Why a leader refuses a read.
const UNCONFIRMED: &str = "no quorum confirmed in time that the leader still leads";
/// Pause before the same leader is asked again.
const PAUSE: Duration = Duration::from_millis(50);

impl Running {
    /// Waits until this node has applied everything acknowledged anywhere before the call.
    pub async fn linearize(&self, deadline: Instant) -> Result<(), Unavailable> {
        let stopping = || Unavailable::nothing_committed("this node is stopping");
        if self.replica.is_removed() {
            return Err(Unavailable::nothing_committed(REMOVED));
        }
        let Replica { me, freshness, .. } = &*self.replica;
        let rules_alone = || self.replica.leads() && self.replica.voters().iter().eq([me]);
        if mutant!("rule-before-applying") && rules_alone() {
            freshness.confirm(freshness.now());
            return Ok(());
        }
        let (answer, asked) = oneshot::channel();
        let waiting = PendingRead { answer, deadline };
        self.reads.send(waiting).map_err(|_| stopping())?;
        let point = match timeout_at(deadline, asked).await {
            Ok(Ok(Ok(point))) => point,
            Ok(Ok(Err(reason))) => return Err(Unavailable::nothing_committed(reason)),
            Ok(Err(_)) => return Err(stopping()),
            Err(_) => {
                let reason = self.replica.without_leader();
                return Err(Unavailable::nothing_committed(reason));
            }
        };
        self.replica.apply_up_to(point.index, deadline).await?;
        let asked = if mutant!("fresh-as-of-the-answer") {
            freshness.now()
        } else {
            point.asked
        };
        freshness.confirm(asked);
        Ok(())
    }
}

impl Running {
    /// Obtains the read index from the leader, in one round for all reads that wait when it begins.
    pub(crate) async fn confirm_reads(self: Arc<Self>, mut queue: UnboundedReceiver<PendingRead>) {
        let mut waiting: Vec<PendingRead> = Vec::new();
        loop {
            if waiting.is_empty() {
                match queue.recv().await {
                    Some(read) => waiting.push(read),
                    None => return,
                }
            }
            while let Ok(read) = queue.try_recv() {
                waiting.push(read);
            }
            waiting.retain(|read| !read.answer.is_closed());
            let Some(latest) = waiting.iter().map(|read| read.deadline).max() else {
                continue;
            };
            let asked = self.replica.freshness.now();
            match self.ask_for_index(latest).await {
                Ok(index) => {
                    self.read_metrics.round(waiting.len(), asked.at.elapsed());
                    if waiting.len() > 1 {
                        RarePath::RoundShared.ran();
                    }
                    while mutant!("join-the-round")
                        && let Ok(read) = queue.try_recv()
                    {
                        waiting.push(read);
                    }
                    for read in waiting.drain(..) {
                        // A caller that has given up needs no answer.
                        let _ = read.answer.send(Ok(ReadPoint { asked, index }));
                    }
                }
                Err(reason) => {
                    self.read_metrics.failures.fetch_add(1, Ordering::Relaxed);
                    self.replica.freshness.cut_off();
                    RarePath::RoundFailed.ran();
                    expire(&mut waiting, &reason);
                }
            }
        }
    }

    /// Asks the leader once. Pauses before it returns an error, so that the caller can retry at
    /// once.
    async fn ask_for_index(&self, latest: Instant) -> Result<u64, String> {
        let replica = &self.replica;
        if let Some(failure) = replica.failure() {
            tokio::time::sleep(PAUSE).await;
            return Err(format!("this node is quarantined: {failure}"));
        }
        let Some(leader) = replica.leader() else {
            replica.other_leader(None, latest).await;
            return Err("no leader is known".to_owned());
        };
        let patience = replica.config.raft.waits().read_index();
        let reply = tokio::select! {
            biased;
            reply = self.ask_leader(&leader, patience) => reply,
            () = replica.other_leader(Some(leader.id), Instant::now() + patience * 2) => {
                Err(format!("node {} no longer leads", leader.id))
            }
        };
        if reply.is_err() {
            replica
                .other_leader(Some(leader.id), Instant::now() + PAUSE)
                .await;
        }
        reply
    }

    async fn ask_leader(&self, leader: &Leader, patience: Duration) -> Result<u64, String> {
        if let Some(index) = self.ask_voters(leader, patience).await? {
            return Ok(index);
        }
        if leader.id == self.replica.me {
            return Err(UNCONFIRMED.to_owned());
        }
        self.peers
            .call(leader.id, &leader.address, Method::ReadIndex, &(), patience)
            .await
            .map_err(|error| self.leader_failed(leader, error))?
    }

    fn leader_failed(&self, leader: &Leader, error: CallError) -> String {
        match error {
            CallError::Removed(_) => {
                self.replica.note_removed(true);
                REMOVED.to_owned()
            }
            error => format!("the leader, node {}: {error}", leader.id),
        }
    }

    /// As the leader: returns a read index for a call of another node. It covers everything that
    /// was acknowledged before the call was sent.
    ///
    /// # Errors
    /// A text: this node does not lead, or no quorum confirmed that it does.
    pub(crate) async fn confirm(&self) -> Result<u64, String> {
        let me = self.replica.me;
        let Some(leader) = self.replica.leader().filter(|leader| leader.id == me) else {
            return Err(format!("node {me} no longer leads"));
        };
        let patience = self.replica.config.raft.waits().read_index();
        let confirmed = self.ask_voters(&leader, patience).await?;
        confirmed.ok_or_else(|| UNCONFIRMED.to_owned())
    }

    /// Asks the leader for its commit index. Unless the leader and this node are a quorum, also
    /// asks the other voters for their votes, in the same round trip. `None`: leadership was not
    /// confirmed.
    async fn ask_voters(&self, leader: &Leader, patience: Duration) -> Result<Option<u64>, String> {
        let replica = &self.replica;
        let stored = replica.membership();
        let members = stored.membership();
        let pair = [leader.id, replica.me];
        let is_pair_enough = quorum::are_quorum(members, pair);
        let others = (members.voter_ids()).filter(|id| !is_pair_enough && !pair.contains(id));
        let mut votes: FuturesUnordered<_> = others
            .filter_map(|id| Some((id, members.get_node(&id)?)))
            .map(|(id, member)| async move {
                let held = (self.peers).call(id, &member.peer, Method::HeldVote, &(), patience);
                (id, held.await.ok())
            })
            .collect();
        let mut shown = BTreeMap::from([(replica.me, held_vote(replica).await)]);
        let asked = async {
            if leader.id == replica.me {
                Ok(point(replica).await)
            } else {
                (self.peers)
                    .call(leader.id, &leader.address, Method::ReadPoint, &(), patience)
                    .await
            }
        };
        let mut asked = std::pin::pin!(asked);
        let mut point: Option<CommitPoint> = None;
        loop {
            if let Some(point) = &point {
                let same = |(id, vote): (&u64, &Option<WireVote>)| {
                    vote.is_some_and(|vote| point.vote == vote || mutant!("count-every-vote"))
                        .then_some(*id)
                };
                let showed = [leader.id].into_iter().chain(shown.iter().filter_map(same));
                if quorum::is_confirmed(point, &showed.collect()) || mutant!("lead-without-quorum")
                {
                    if is_pair_enough {
                        RarePath::RoundOfTwo.ran()
                    } else {
                        RarePath::RoundOfMany.ran()
                    }
                    return Ok(Some(point.index));
                }
            }
            tokio::select! {
                biased;
                reply = &mut asked, if point.is_none() => {
                    point = reply.map_err(|error| self.leader_failed(leader, error))?;
                    if point.is_none() {
                        return Ok(None);
                    }
                }
                Some((id, vote)) = votes.next() => {
                    shown.insert(id, vote);
                }
                else => return Ok(None),
            }
        }
    }
}

/// Answers the reads whose deadline has passed with `reason`; the others wait for the next round.
fn expire(waiting: &mut Vec<PendingRead>, reason: &str) {
    let now = Instant::now();
    for read in waiting.extract_if(.., |read| read.deadline <= now) {
        let _ = read.answer.send(Err(reason.to_owned()));
    }
}

/// The current vote of this node; `None` if it is quarantined.
pub(crate) async fn held_vote(replica: &Replica) -> Option<WireVote> {
    raft_state(replica, |state| WireVote::from(state.vote_ref())).await
}

/// As the leader: the commit index with the vote that a quorum must confirm. `None`: this node does
/// not lead, or has committed nothing in its own term yet.
pub(crate) async fn point(replica: &Replica) -> Option<CommitPoint> {
    let me = replica.me;
    raft_state(replica, move |state| quorum::point(state, me))
        .await
        .flatten()
}

/// Reads openraft's state. A quarantined node does not ask openraft, which would log an error for
/// each question.
async fn raft_state<T: Send + 'static>(
    replica: &Replica,
    read: impl FnOnce(&RaftState<TypeConfig>) -> T + Send + 'static,
) -> Option<T> {
    if replica.failure().is_some() {
        return None;
    }
    replica.raft.with_raft_state(read).await.ok()
}
