//! Membership changes. The leader makes them, one node at a time and in one log entry each, so a
//! cluster is never left half way between two memberships.
//!
//! A node's number is never reused. The state keeps a session row for each node that has written,
//! so its number stays known. The row of a removed node is closed, so its late writes are rejected.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use openraft::errors::{ClientWriteError, RaftError};
use openraft::{ChangeMembers, Precondition};
use placement_model::command::{Command, RetireNode};
use placement_model::mutant;
use placement_raft_store::{Identity, Member, Membership as RaftMembership, Payload, TypeConfig};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::error::Refused;
use crate::leadership::hand_over::hand_over;
use crate::replica::{Leader, REMOVED, Replica};
use crate::running::Running;
use crate::slot::Slot;
use crate::topology::{MemberStatus, made_fatal};
use placement_base::log_messages::log;
use placement_peer::raft::messages::Introduction;
use placement_peer::raft::peers::Peers;
use placement_peer::transport::channel::CallError;
use placement_peer::transport::method::Method;

/// Deadline of an operator's request.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);
/// Deadline of a call to a node that should join.
const INTRODUCTION: Duration = Duration::from_secs(5);
/// How long a promotion waits for the learner to catch up.
const CATCH_UP: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);

/// An operator's request to the leader. Log it only through `Display`: its fields may hold secrets.
#[derive(Clone, Serialize, Deserialize)]
pub enum MembershipChange {
    /// Makes a learner a voter.
    Promote { id: u64, force: bool },
    /// Removes a node from the cluster.
    Remove { id: u64, force: bool },
    /// Hands leadership to a voter; `None`: to the best one.
    TransferLeader { to: Option<u64> },
    /// Makes a voter a learner, which continues to serve reads.
    Demote { id: u64, force: bool },
    /// A node's description of itself: name, site and addresses. Only the node itself sends it.
    /// `start` is the number of its current start, sent until the node knows that its data are not
    /// an older copy.
    Describe {
        id: u64,
        member: Box<Member>,
        start: Option<u64>,
    },
    /// Assigns a number to a node that will join with the token of this hash.
    IssueToken {
        token: String,
        seconds: u64,
        /// The node to replace, and whether to replace it although it is reachable.
        replaces: Option<(u64, bool)>,
    },
}

impl fmt::Display for MembershipChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forced = |force: bool| if force { ", forced" } else { "" };
        match self {
            Self::Promote { id, force } => write!(f, "promotion of node {id}{}", forced(*force)),
            Self::Demote { id, force } => write!(f, "demotion of node {id}{}", forced(*force)),
            Self::Remove { id, force } => write!(f, "removal of node {id}{}", forced(*force)),
            Self::TransferLeader { to: None } => write!(f, "transfer of leadership"),
            Self::TransferLeader { to: Some(to) } => {
                write!(f, "transfer of leadership to node {to}")
            }
            Self::Describe { id, .. } => write!(f, "description of node {id}"),
            Self::IssueToken { replaces, .. } => match replaces {
                None => write!(f, "token for a new node"),
                Some((old, _)) => write!(f, "token for a replacement of node {old}"),
            },
        }
    }
}

impl Slot {
    /// Sends an operator's request to the leader and returns its answer.
    pub async fn change(&self, change: MembershipChange) -> Result<(), Refused> {
        let running = self.member()?;
        let replica = &running.replica;
        if replica.is_removed() {
            return Err(Refused::Conflict(REMOVED.to_owned()));
        }
        let deadline = Instant::now() + self.wait();
        loop {
            let mut reason = "no leader is known".to_owned();
            let done = match replica.leader() {
                None => Err(Refused::NotLeader),
                Some(leader) if leader.id == replica.me => {
                    Membership(&running).change(change.clone()).await
                }
                Some(Leader { id, address }) => {
                    let call = (running.peers).call(id, &address, Method::Admin, &change, DEADLINE);
                    call.await.unwrap_or_else(|error| {
                        if error.is_without_effect() {
                            reason = error.to_string();
                            return Err(Refused::NotLeader);
                        }
                        Err(Refused::Unavailable(format!(
                            "the leader, node {id}, did not answer ({error}); check the status \
                            before you retry"
                        )))
                    })
                }
            };
            if !matches!(done, Err(Refused::NotLeader)) {
                return done;
            }
            if Instant::now() >= deadline {
                return Err(Refused::NothingCommitted(reason));
            }
            replica.other_leader(None, Instant::now() + PAUSE).await;
            sleep(PAUSE).await;
        }
    }

    /// Hands leadership over and returns the new leader.
    pub async fn transfer_leader(&self, to: Option<u64>) -> Result<u64, Refused> {
        let leader = || Some(self.get()?.replica.leader()?.id);
        let before = leader();
        self.change(MembershipChange::TransferLeader { to }).await?;
        // This node may learn of the change later than the former leader.
        let is_new = |leader: &u64| to.map_or(Some(*leader) != before, |to| to == *leader);
        let found = wait_for(self.wait(), || leader().filter(is_new)).await;
        found.ok_or_else(|| {
            let reason = "leadership was handed over, but the new leader is not known here \
                yet: check the status";
            Refused::Unavailable(reason.to_owned())
        })
    }
}

/// Polls until `look` returns a value or `patience` has passed.
async fn wait_for<T>(patience: Duration, look: impl Fn() -> Option<T>) -> Option<T> {
    let give_up = Instant::now() + patience;
    loop {
        let found = look();
        if found.is_some() || Instant::now() >= give_up {
            return found;
        }
        sleep(PAUSE).await;
    }
}

/// Membership operations of the leader.
pub(crate) struct Membership<'a>(pub(crate) &'a Running);

impl Membership<'_> {
    pub(crate) fn replica(&self) -> &Replica {
        &self.0.replica
    }

    /// Carries out an operator's request, as the leader.
    pub(crate) async fn change(&self, change: MembershipChange) -> Result<(), Refused> {
        if !self.replica().leads() {
            return Err(Refused::NotLeader);
        }
        log!(MEMBERSHIP_CHANGE, %change, "applying a membership change");
        let done = match change {
            MembershipChange::Promote { id, force } => self.promote(id, force).await,
            MembershipChange::Remove { id, force } | MembershipChange::Demote { id, force }
                if id == self.replica().me =>
            {
                // The next leader carries it out. openraft lets a leader without a vote continue to
                // lead, and a removed leader could not close its own number.
                match self.hand_over_without_vote(force).await {
                    Ok(()) => return Err(Refused::NotLeader),
                    refused => refused,
                }
            }
            MembershipChange::Remove { id, force } => self.remove(id, force).await,
            MembershipChange::Demote { id, force } => self.demote(id, force).await,
            MembershipChange::TransferLeader { to } => self.transfer(to).await,
            MembershipChange::IssueToken {
                token,
                seconds,
                replaces,
            } => self.issue_token(token, seconds, replaces).await,
            MembershipChange::Describe { id, member, start } => {
                self.describe(id, *member, start).await
            }
        };
        done.inspect_err(|refused| {
            log!(
                MEMBERSHIP_CHANGE_REFUSED,
                %refused,
                "the membership change was refused"
            )
        })
    }

    pub(crate) async fn add(&self, id: u64, member: Member) -> Result<(), Refused> {
        if self.replica().is_member(id) {
            return Err(Refused::Conflict(format!("node {id} is already a member")));
        }
        // A node with this number has written before.
        if self.replica().views.current().cluster.session(id).is_some() {
            return Err(Refused::Conflict(format!(
                "a node {id} was a member before: give the new node a number that was never \
                 used, and an empty data directory"
            )));
        }
        let unreachable = |error: CallError| {
            Refused::Unavailable(format!("the new node at {}: {error}", member.peer))
        };
        let found: Introduction = (self.0.peers)
            .introduce(&member.peer, Method::Probe, &(), INTRODUCTION)
            .await
            .map_err(unreachable)?;
        if found.node != id {
            return Err(Refused::Conflict(format!(
                "node {} answers at {}, not node {id}",
                found.node, member.peer
            )));
        }
        if found
            .cluster
            .is_some_and(|cluster| cluster != self.replica().identity.cluster)
        {
            return Err(Refused::Conflict(format!(
                "node {id} belongs to another cluster: start it with an empty data directory"
            )));
        }
        (self.replica().must_agree(id, found.level)).map_err(Refused::Conflict)?;
        // The node may already have a log of this cluster: an earlier leader admitted the node in
        // an entry that the next leader discarded.
        let invited = invite(&self.0.peers, self.replica().identity, id, &member.peer);
        invited.await.map_err(unreachable)?;
        let (now, voters) = self.now();
        let mut members = self.replica().members();
        members.insert(id, member);
        self.set_membership(now, voters, members).await
    }

    /// Whether this member answers at `address` and still belongs to this cluster.
    pub(crate) async fn is_at(&self, address: &str, id: u64) -> bool {
        let asked = (self.0.peers).introduce(address, Method::Probe, &(), INTRODUCTION);
        let cluster = Some(self.replica().identity.cluster);
        let is_it = |found: Introduction| found.node == id && found.cluster == cluster;
        asked.await.is_ok_and(is_it)
    }

    /// Updates the description of a member. The caller has checked its address, so the member stays
    /// reachable.
    pub(crate) async fn set_member(
        &self,
        unchanged: Precondition<TypeConfig>,
        id: u64,
        member: Member,
    ) -> Result<(), Refused> {
        let change = ChangeMembers::SetNodes(BTreeMap::from([(id, member)]));
        let raft = &self.replica().raft;
        match raft.change_membership_if(change, true, [unchanged]).await {
            Ok(_) => Ok(()),
            Err(error) => Err(Refused::Unavailable(error.to_string())),
        }
    }

    pub(crate) async fn promote(&self, id: u64, force: bool) -> Result<(), Refused> {
        self.must_be_member(id)?;
        let (_, voters) = self.now();
        if voters.contains(&id) {
            return Ok(());
        }
        self.check_survives(&(&voters | &BTreeSet::from([id])), force)?;
        self.caught_up(id, CATCH_UP).await.map_err(|lag| {
            Refused::Conflict(match lag {
                Some(lag) => {
                    format!("node {id} still lacks {lag} log entries: wait until it has caught up")
                }
                None => format!("node {id} has not answered yet"),
            })
        })?;
        let (now, mut voters) = self.now();
        if !voters.insert(id) {
            return Ok(());
        }
        self.set_membership(now, voters, self.replica().members())
            .await
    }

    /// Waits until a node has nearly the whole log.
    ///
    /// # Errors
    /// The number of entries that it still lacks after `patience`, if known.
    async fn caught_up(&self, id: u64, patience: Duration) -> Result<(), Option<u64>> {
        let replica = self.replica();
        let done = wait_for(patience, || replica.has_caught_up(id).then_some(())).await;
        done.ok_or_else(|| replica.lag(id))
    }

    async fn demote(&self, id: u64, force: bool) -> Result<(), Refused> {
        self.must_be_member(id)?;
        let (now, mut voters) = self.now();
        if !voters.remove(&id) {
            return Ok(());
        }
        self.check_removal(id, &voters, force).await?;
        self.set_membership(now, voters, self.replica().members())
            .await
    }

    async fn remove(&self, id: u64, force: bool) -> Result<(), Refused> {
        if self.is_half_removed(id) {
            return self.retire(id).await;
        }
        self.must_be_member(id)?;
        let (now, mut voters) = self.now();
        if voters.remove(&id) {
            self.check_removal(id, &voters, force).await?;
        }
        self.remove_node(id, now, voters).await
    }

    /// Hands leadership over if the cluster can do without this node's vote.
    async fn hand_over_without_vote(&self, force: bool) -> Result<(), Refused> {
        let (me, (_, mut left)) = (self.replica().me, self.now());
        left.remove(&me);
        self.check_removal(me, &left, force).await?;
        self.hand_over(None).await.map(drop)
    }

    /// Removes a node, which must not be among `voters`.
    pub(crate) async fn remove_node(
        &self,
        id: u64,
        unchanged: Precondition<TypeConfig>,
        voters: BTreeSet<u64>,
    ) -> Result<(), Refused> {
        let mut members = self.replica().members();
        members.remove(&id);
        self.set_membership(unchanged, voters, members).await?;
        self.retire(id).await
    }

    /// Whether a node was removed from the membership but its number is not closed yet.
    fn is_half_removed(&self, id: u64) -> bool {
        self.replica().last_start(id).is_some() && !self.replica().is_member(id)
    }

    /// Checks that the cluster keeps working with the voters `left` once `id` has no vote.
    async fn check_removal(
        &self,
        id: u64,
        left: &BTreeSet<u64>,
        force: bool,
    ) -> Result<(), Refused> {
        if left.is_empty() {
            return Err(Refused::Conflict(format!(
                "node {id} is the last voter: a cluster needs at least one"
            )));
        }
        self.check_survives(left, force)?;
        self.must_be_reachable(left).await
    }

    /// Checks that a majority of these voters is reachable.
    pub(crate) async fn must_be_reachable(&self, left: &BTreeSet<u64>) -> Result<(), Refused> {
        let reachable = self.reachable(left).await;
        if reachable.len() > left.len() / 2 {
            return Ok(());
        }
        Err(Refused::Conflict(format!(
            "reachable are {} of the remaining voters {}, which is not a majority: bring the \
             others back first",
            listed(&reachable),
            listed(left)
        )))
    }

    /// Checks that these voters satisfy `[cluster] survive`, or satisfy it better than the current
    /// voters.
    fn check_survives(&self, voters: &BTreeSet<u64>, force: bool) -> Result<(), Refused> {
        let wanted = self.replica().config.cluster.survive;
        let Some(extent) = wanted.filter(|_| !force) else {
            return Ok(());
        };
        let before = self.standings(&self.now().1);
        let fatal = made_fatal(&before, &self.standings(voters), extent);
        let Some(first) = fatal.first() else {
            return Ok(());
        };
        Err(Refused::Conflict(format!(
            "with the voters {} the loss of {first} would stop the cluster, but [cluster] \
             survive requires that it survives the loss of any {extent}. `placementctl topology` \
             shows the sites; change other nodes first, or use --force for an intermediate step",
            listed(voters)
        )))
    }

    /// The status of all members if `voters` were the voters. All members count as reachable,
    /// because unreachable members may return.
    fn standings(&self, voters: &BTreeSet<u64>) -> Vec<MemberStatus> {
        let standing = |(node, member): (u64, Member)| MemberStatus {
            node,
            site: *member.site,
            is_voter: voters.contains(&node),
            is_reachable: true,
        };
        self.replica().members().into_iter().map(standing).collect()
    }

    /// As the leader: returns the nodes in `voters` that are reachable. A new leader waits a moment
    /// for their answers.
    pub(crate) async fn reachable(&self, voters: &BTreeSet<u64>) -> Vec<u64> {
        let patience = self.replica().config.raft.waits().first_answers();
        let is_reachable = |voter: &u64| self.replica().is_reachable(*voter);
        let now = || -> Vec<u64> { voters.iter().copied().filter(is_reachable).collect() };
        let majority = || Some(now()).filter(|found| found.len() > voters.len() / 2);
        (wait_for(patience, majority).await).unwrap_or_else(now)
    }

    /// Closes the number of a removed node: its late writes are rejected, and the number is never
    /// reused.
    pub(crate) async fn retire(&self, id: u64) -> Result<(), Refused> {
        let command = Command::RetireNode(RetireNode { node: id });
        let what = format!("removal of node {id}");
        let retired = self.0.commit(command, what).await;
        retired.map(drop).map_err(|error| {
            Refused::Unavailable(format!(
                "node {id} is no longer a member, but its late writes are not blocked yet \
                 ({error}): remove it once more, and do not reuse its number"
            ))
        })
    }

    async fn transfer(&self, to: Option<u64>) -> Result<(), Refused> {
        let (_, voters) = self.now();
        if let Some(to) = to {
            if to == self.replica().me {
                return Ok(());
            }
            if !voters.contains(&to) {
                return Err(Refused::Conflict(format!(
                    "node {to} is not a voter; the voters are {}",
                    listed(&voters)
                )));
            }
            self.must_be_fit_to_lead(to).await?;
        }
        let leader = self.hand_over(to).await?;
        if to.is_none_or(|to| to == leader) {
            return Ok(());
        }
        Err(Refused::Conflict(format!(
            "node {leader} won the election instead of the requested node"
        )))
    }

    /// Hands leadership to a voter, or to the best one; returns the new leader.
    pub(crate) async fn hand_over(&self, to: Option<u64>) -> Result<u64, Refused> {
        let patience = self.replica().config.raft.waits().transfer();
        let handed = hand_over(self.replica(), to, patience).await;
        handed.map_err(Refused::Unavailable)
    }

    /// Refuses to hand over to a node that is unreachable or lacks much of the log: the cluster
    /// would accept no writes until the attempt times out.
    async fn must_be_fit_to_lead(&self, id: u64) -> Result<(), Refused> {
        if self.reachable(&BTreeSet::from([id])).await.is_empty() {
            return Err(Refused::Conflict(format!(
                "node {id} has not answered lately: node {} remains the leader",
                self.replica().me
            )));
        }
        // A new leader does not know yet how much of the log the others have.
        let patience = self.replica().config.raft.waits().first_answers();
        self.caught_up(id, patience).await.map_err(|lag| {
            let lag = lag.map_or("an unknown number of".to_owned(), |lag| lag.to_string());
            Refused::Conflict(format!(
                "node {id} lacks {lag} log entries: wait until it has caught up; node {} remains \
                the leader",
                self.replica().me
            ))
        })
    }

    pub(crate) fn must_be_member(&self, id: u64) -> Result<(), Refused> {
        if self.replica().is_member(id) {
            Ok(())
        } else {
            Err(Refused::NotFound(format!("node {id} is not a member")))
        }
    }

    /// The effective membership: the log entry that set it, and its voters.
    pub(crate) fn now(&self) -> (Precondition<TypeConfig>, BTreeSet<u64>) {
        let stored = self.replica().membership();
        let unchanged = Precondition::LastMembershipLogId {
            last_membership_log_id: *stored.log_id(),
        };
        (unchanged, stored.membership().voter_ids().collect())
    }

    /// Sets the membership, unless it has changed since the caller read it. openraft itself only
    /// refuses a change of voters while another one is in progress. Without this check, a demotion
    /// that waits while another request demotes the same node and a third one promotes another node
    /// would undo that promotion.
    pub(crate) async fn set_membership(
        &self,
        unchanged: Precondition<TypeConfig>,
        voters: BTreeSet<u64>,
        members: BTreeMap<u64, Member>,
    ) -> Result<(), Refused> {
        let membership = RaftMembership::new(vec![voters], members)
            .map_err(|error| Refused::Conflict(error.to_string()))?;
        let unchanged = (!mutant!("overwrite-members")).then_some(unchanged);
        let append = self
            .replica()
            .raft
            .append_membership(membership, Payload::Blank, unchanged);
        match tokio::time::timeout(DEADLINE / 2, append).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_)))) => Err(
                Refused::Unavailable("the leader has changed: retry".to_owned()),
            ),
            Ok(Err(RaftError::APIError(
                error @ (ClientWriteError::ChangeMembershipError(_)
                | ClientWriteError::PreconditionFailed(_)),
            ))) => Err(Refused::Conflict(format!(
                "another change is under way: retry ({error})"
            ))),
            Ok(Err(error)) => Err(Refused::Unavailable(error.to_string())),
            Err(_) => Err(Refused::Unavailable(
                "no majority has acknowledged the change in time; check the status before you retry"
                    .to_owned(),
            )),
        }
    }
}

/// Makes a node without data join the cluster of `identity`.
pub(crate) async fn invite(
    peers: &std::sync::Arc<Peers>,
    identity: Identity,
    node: u64,
    address: &str,
) -> Result<(), CallError> {
    let invited = Identity { node, ..identity };
    peers
        .introduce(address, Method::Invite, &invited, INTRODUCTION)
        .await
}

/// The numbers of nodes, such as `1, 2 and 3`.
fn listed<'a>(ids: impl IntoIterator<Item = &'a u64>) -> String {
    let ids: Vec<String> = ids.into_iter().map(u64::to_string).collect();
    match &ids[..] {
        [] => "none".to_owned(),
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        ids => ids.concat(),
    }
}

#[cfg(test)]
mod tests {
    use placement_model::Level;
    use placement_model::command::{RaiseLevel, WriteId};
    use placement_model::types::Destination;
    use placement_raft_store::wire::{self, Blob, RecordVersion};

    use super::*;
    use crate::fixtures::SingleMember;
    use placement_peer::raft::messages::WriteCall;

    fn member(id: u64) -> Member {
        Member {
            peer: format!("192.0.2.{id}:8779"),
            ..Member::default()
        }
    }

    #[tokio::test]
    async fn change_based_on_an_outdated_membership_is_refused() {
        let alone = SingleMember::start().await;
        let membership = Membership(&alone.running);
        // Two operators add a node each, based on the same membership.
        let [(first, voters), (second, _)] = [(); 2].map(|()| membership.now());
        let with = |id| {
            let mut members = alone.running.replica.members();
            members.insert(id, member(id));
            members
        };
        let (with_2, with_3) = (with(2), with(3));
        let added = membership.set_membership(first, voters.clone(), with_2);
        added.await.unwrap();
        let refused = membership
            .set_membership(second, voters.clone(), with_3)
            .await;
        assert!(
            matches!(&refused, Err(Refused::Conflict(words)) if words.contains("another change")),
            "{refused:?}"
        );
        let has_2 = |replica: &Replica| replica.is_member(2);
        alone.becomes("a member with node 2", has_2).await;
        assert!(!alone.running.replica.is_member(3));
        // Based on the current membership, it succeeds.
        let (now, _) = membership.now();
        membership
            .set_membership(now, voters, with(3))
            .await
            .unwrap();
        let has_all = |replica: &Replica| replica.members().keys().copied().eq([1, 2, 3]);
        alone.becomes("one of three members", has_all).await;
        alone.stop().await;
    }

    #[tokio::test]
    async fn second_removal_completes_a_half_done_one() {
        let alone = SingleMember::start().await;
        let (replica, membership) = (&alone.running.replica, Membership(&alone.running));
        let (now, voters) = membership.now();
        let mut members = replica.members();
        members.insert(2, member(2));
        membership
            .set_membership(now, voters.clone(), members.clone())
            .await
            .unwrap();
        let has_2 = |replica: &Replica| replica.is_member(2);
        alone.becomes("a member with node 2", has_2).await;
        // The node has written, which the cluster remembers.
        let command = Command::RaiseLevel(RaiseLevel { to: Level::NEWEST });
        let written = WriteCall {
            write_id: WriteId {
                origin: 2,
                boot: 1,
                sequence: 1,
                answered_below: 1,
            },
            request_id: "a write of node 2".to_owned(),
            command: Blob(wire::encode(RecordVersion::NEWEST, &command).into()),
            patience_ms: 0,
            destination: Destination::DEFAULT,
            trace: None,
        };
        let deadline = Instant::now() + DEADLINE;
        alone.running.propose(written, deadline).await.unwrap();
        // The leader removes it but does not close its number.
        members.remove(&2);
        let (now, _) = membership.now();
        membership
            .set_membership(now, voters, members)
            .await
            .unwrap();
        alone
            .becomes("alone again", |replica| !has_2(replica))
            .await;
        let is_retired = || replica.views.current().cluster.is_retired(2);
        assert!(!is_retired());
        membership.remove(2, false).await.unwrap();
        assert!(is_retired());
        let refused = membership.remove(2, false).await;
        assert!(matches!(refused, Err(Refused::NotFound(_))), "{refused:?}");
        alone.stop().await;
    }
}
