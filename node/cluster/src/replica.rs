//! The state of this node as a member: leader, members, log positions. This module only answers
//! queries; the tasks that act on the state are in other modules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use openraft::alias::WatchReceiverOf;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::metrics::RaftServerMetrics;
use openraft::{RaftMetrics, ServerState};
use placement_model::mutant;
use placement_model::{Command, Level};
use placement_raft_store::{
    Health, Identity, Ledger, LogId, Member, Raft, StoredMembership, TypeConfig, Views, Vote,
};
use tokio::time::{Instant, timeout_at};

use super::freshness::Freshness;
use super::settings::Settings;
use placement_base::backend::{PlacementIndex, Position, Unavailable, View};
use placement_base::log_messages::log;
use placement_base::world::Clock;

/// Reported by a removed node.
pub const REMOVED: &str = "this node was removed from its cluster. Stop it; to reuse the \
                                  machine, empty its data directory and add it under \
                                  a number that was never used";

/// Reported by a node whose data are older than the cluster's knowledge of it.
pub(super) fn older_copy(start: u64, last: u64) -> String {
    format!(
        "by its own count this is start {start} of this node, but the cluster has already seen its \
         start {last}: its data directory is an older copy, which lacks the writes and votes that \
         the node has acknowledged since"
    )
}

/// This node's copy of the replicated state, and the state of Raft.
pub struct Replica {
    pub me: u64,
    pub identity: Identity,
    pub views: Views,
    pub ledger: Ledger,
    pub freshness: Freshness,
    pub(super) raft: Raft,
    server_metrics: WatchReceiverOf<TypeConfig, RaftServerMetrics<TypeConfig>>,
    metrics: WatchReceiverOf<TypeConfig, RaftMetrics<TypeConfig>>,
    pub(super) health: Health,
    pub(super) config: Arc<Settings>,
    /// Number of changes of the leader that this node has seen since it started, including changes
    /// to no leader.
    pub leader_changes: AtomicU64,
    /// Replacements that this node completed as the leader.
    pub replacements: AtomicU64,
    /// How often this node, as the leader, stopped sending entries to a member that lagged too far.
    pub given_up_streams: AtomicU64,
    /// Whether the others have reported that this node was removed.
    removed: AtomicBool,
    /// As the leader: whether the disks of a majority have room.
    room: AtomicBool,
}

/// The leader as this node knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    pub id: u64,
    pub(crate) address: String,
}

/// Subscription to changes of leadership and membership.
pub(crate) struct LeadershipChanges {
    receiver: WatchReceiverOf<TypeConfig, RaftServerMetrics<TypeConfig>>,
}

impl LeadershipChanges {
    /// Waits for the next change. Never returns after Raft has stopped.
    pub(crate) async fn next(&mut self) {
        if self.receiver.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

/// Index of a log id.
pub fn index(id: Option<LogId>) -> Option<u64> {
    id.map(|id| id.index())
}

/// Index of the entry that set a membership.
fn membership_index(stored: &StoredMembership) -> u64 {
    index(*stored.log_id()).unwrap_or(0)
}

impl Replica {
    pub(super) fn new(
        identity: Identity,
        raft: Raft,
        (views, ledger): (Views, Ledger),
        health: Health,
        config: Arc<Settings>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            me: identity.node,
            identity,
            views,
            ledger,
            freshness: Freshness::new(clock),
            server_metrics: raft.server_metrics(),
            metrics: raft.metrics(),
            raft,
            health,
            config,
            leader_changes: AtomicU64::new(0),
            replacements: AtomicU64::new(0),
            given_up_streams: AtomicU64::new(0),
            removed: AtomicBool::new(false),
            room: AtomicBool::new(true),
        }
    }

    fn server_metrics<T>(&self, of: impl FnOnce(&RaftServerMetrics<TypeConfig>) -> T) -> T {
        of(&self.server_metrics.borrow_watched())
    }

    pub(super) fn raft_metrics<T>(&self, of: impl FnOnce(&RaftMetrics<TypeConfig>) -> T) -> T {
        of(&self.metrics.borrow_watched())
    }

    /// Raft's metrics, for operators and monitoring.
    pub fn raft_status(&self) -> RaftMetrics<TypeConfig> {
        self.raft_metrics(Clone::clone)
    }

    /// The durable vote of this node, and whether it believes that it leads.
    pub fn vote(&self) -> (Vote, bool) {
        self.server_metrics(|metrics| (metrics.vote, metrics.state == ServerState::Leader))
    }

    /// Subscribes to changes from now on.
    pub(crate) fn leadership_changes(&self) -> LeadershipChanges {
        let mut receiver = self.raft.server_metrics();
        let _ = receiver.borrow_and_update();
        LeadershipChanges { receiver }
    }

    /// Why this node is quarantined, if it is: its disk failed, or Raft stopped.
    pub fn failure(&self) -> Option<Arc<str>> {
        self.health.failure().or_else(|| {
            self.raft_metrics(|metrics| {
                let fatal = metrics.running_state.as_ref().err()?;
                Some(format!("replication has stopped: {fatal}").into())
            })
        })
    }

    /// Quarantines this node permanently, because its state after the entry at `index` differs from
    /// that of a majority.
    pub(super) fn quarantine_as_diverged(&self, index: u64) {
        self.leave(&format!(
            "after entry {index} its state differs from that of a majority, so its answers \
             may be wrong"
        ));
    }

    /// Quarantines this node permanently, because its data are an older copy.
    pub(super) fn quarantine_as_older_copy(&self, start: u64, last: u64) {
        self.leave(&older_copy(start, last));
    }

    fn leave(&self, words: &str) {
        if let Err(error) = placement_raft_store::leave(&self.config.data_dir, words) {
            log!(
                QUARANTINE_NOT_RECORDED,
                %error,
                "cannot record the quarantine; the next start will not know of it"
            );
        }
        self.health.report(words);
    }

    /// Whether this node has a log, so that it must not be initialised again.
    pub(crate) fn is_formed(&self) -> bool {
        self.raft_metrics(|metrics| {
            metrics.last_log_index.is_some() || metrics.last_applied.is_some()
        })
    }

    /// Whether this node is a member according to the applied log. Uncommitted changes do not
    /// count: another leader may discard them.
    pub(crate) fn is_settled(&self) -> bool {
        let applied = self.views.current();
        applied.membership.membership().get_node(&self.me).is_some()
    }

    /// The leader, as far as this node knows; `None` once this node is quarantined.
    pub fn leader(&self) -> Option<Leader> {
        self.led_by(|id, address| Leader {
            id,
            address: address.to_owned(),
        })
    }

    /// The leader's number; `None` once this node is quarantined.
    pub fn leader_id(&self) -> Option<u64> {
        self.led_by(|id, _| id)
    }

    fn led_by<T>(&self, of: impl FnOnce(u64, &str) -> T) -> Option<T> {
        if self.failure().is_some() {
            return None;
        }
        self.server_metrics(|metrics| {
            let id = metrics.current_leader?;
            let member = metrics.membership_config.membership().get_node(&id);
            // A removed leader continues to lead for a moment, although it is no longer in the
            // membership.
            match member {
                Some(member) => Some(of(id, &member.peer)),
                None if id == self.me => Some(of(id, "")),
                None => None,
            }
        })
    }

    /// The feature level of the cluster, as far as this node has applied it.
    pub fn level(&self) -> Level {
        self.views.current().cluster.level()
    }

    /// Checks that a node which supports feature levels up to `highest` can take part.
    pub(super) fn must_agree(&self, id: u64, highest: Level) -> Result<(), String> {
        let level = self.level();
        if level <= highest {
            return Ok(());
        }
        Err(format!(
            "node {id} supports feature levels up to {highest}, but the cluster is at {level}: \
            start it with the version of the other nodes"
        ))
    }

    /// Checks that the feature level allows this command.
    pub(super) fn permits(&self, command: &Command) -> Result<(), String> {
        let (level, needed) = (self.level(), command.level());
        if needed <= level {
            return Ok(());
        }
        Err(format!(
            "this needs feature level {needed}, but the cluster is at {level}: the level rises once \
             all nodes run a version that supports {needed}"
        ))
    }

    /// Whether this node leads, as far as it knows. A quarantined node does not lead, although
    /// openraft's metrics still show its last role.
    pub(crate) fn leads(&self) -> bool {
        self.server_metrics(|metrics| metrics.state == ServerState::Leader)
            && self.failure().is_none()
    }

    /// Waits for a leader other than `than` (`None`: for any leader), until the deadline.
    pub async fn other_leader(&self, than: Option<u64>, deadline: Instant) {
        let mut changes = self.leadership_changes();
        let wait = async {
            loop {
                match self.leader_id() {
                    Some(leader) if Some(leader) != than => return,
                    _ => changes.next().await,
                }
            }
        };
        // After a timeout the caller checks again, as after a change.
        let _ = timeout_at(deadline, wait).await;
    }

    /// The members of the effective membership.
    pub fn members(&self) -> BTreeMap<u64, Member> {
        let stored = self.membership();
        let members = stored.membership().nodes();
        members.map(|(id, member)| (*id, member.clone())).collect()
    }

    /// One member of the effective membership.
    pub fn member(&self, id: u64) -> Option<Member> {
        self.membership().membership().get_node(&id).cloned()
    }

    /// The voters of the effective membership.
    pub fn voters(&self) -> BTreeSet<u64> {
        self.membership().membership().voter_ids().collect()
    }

    /// The other members that this node keeps trying to reach: all members if it leads, otherwise
    /// the voters.
    pub fn tried(&self) -> BTreeSet<u64> {
        let mut tried: BTreeSet<_> = match self.leader_id() {
            Some(leader) if leader == self.me => self.members().into_keys().collect(),
            _ => self.voters(),
        };
        tried.remove(&self.me);
        tried
    }

    /// Whether a node is a voter or a learner.
    pub(crate) fn is_member(&self, id: u64) -> bool {
        self.membership().membership().get_node(&id).is_some()
    }

    /// The effective membership, with the log entry that set it.
    pub(super) fn membership(&self) -> Arc<StoredMembership> {
        self.server_metrics(|metrics| metrics.membership_config.clone())
    }

    /// Whether the others have reported that this node was removed.
    pub fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Relaxed)
    }

    /// Index of the applied membership, if node `id` was a member and is not in this membership.
    /// Uncommitted changes do not count: another leader may discard them.
    pub(crate) fn removal_of(&self, id: u64) -> Option<u64> {
        let applied = self.views.current();
        let is_member = applied.membership.membership().get_node(&id).is_some();
        // A node with a session has written, so it was a member. A node without a session may be
        // new.
        let was_member = applied.cluster.session(id).is_some();
        (was_member && !is_member).then(|| membership_index(&applied.membership))
    }

    /// Index of the effective membership, if node `id` is not in it. `None` while this node knows
    /// no members at all.
    pub(crate) fn membership_without(&self, id: u64) -> Option<u64> {
        let stored = self.membership();
        let membership = stored.membership();
        let knows_members = membership.nodes().next().is_some();
        let is_without = knows_members && membership.get_node(&id).is_none();
        is_without.then(|| membership_index(&stored))
    }

    /// The last start of a node in which it has written, as far as this node has applied the log.
    /// `None` for a removed node.
    pub(super) fn last_start(&self, node: u64) -> Option<u64> {
        let applied = self.views.current();
        let session = applied.cluster.session(node)?;
        (!applied.cluster.is_retired(node)).then_some(session.boot)
    }

    /// Records another member's report on whether this node was removed.
    pub(super) fn note_removed(&self, removed: bool) {
        if self.removed.swap(removed, Ordering::Relaxed) != removed && removed {
            log!(REMOVED, node = self.me, "{REMOVED}");
        }
    }

    /// As the leader: checks that the disks have room for a command.
    pub(super) fn has_room_for(&self, command: &Command) -> Result<(), String> {
        if self.room.load(Ordering::Relaxed) || !command.grows() {
            return Ok(());
        }
        Err(format!(
            "the disks of a majority of the nodes have less than {} bytes left ([disk] \
             min_free_bytes); deletions are still carried out",
            self.config.disk.min_free_bytes
        ))
    }

    /// Notes whether the disks have room. Returns the previous value.
    pub(super) fn note_room(&self, room: bool) -> bool {
        self.room.swap(room, Ordering::Relaxed)
    }

    /// As the leader: how many log entries a node lacks, if it has answered.
    pub(super) fn lag(&self, id: u64) -> Option<u64> {
        self.raft_metrics(|metrics| {
            let matched = (*metrics.replication.as_ref()?.get(&id)?)?;
            let last = metrics.last_log_index.unwrap_or(0);
            Some(last.saturating_sub(matched.index()))
        })
    }

    /// As the leader: whether a node has nearly the whole log.
    pub(super) fn has_caught_up(&self, id: u64) -> bool {
        self.lag(id)
            .is_some_and(|lag| lag <= self.config.raft.promote_lag_max)
    }

    /// As the leader: whether a node answered recently.
    pub(super) fn is_reachable(&self, id: u64) -> bool {
        if id == self.me {
            return true;
        }
        let lately = self.config.raft.waits().reachable();
        self.raft_metrics(|metrics| {
            let answers = metrics.heartbeat.as_ref();
            let last = answers.and_then(|all| *all.get(&id)?);
            last.is_some_and(|at| openraft::Instant::elapsed(&*at) < lately)
        })
    }

    /// As the leader: the number of reachable voters that can fail while a quorum remains.
    pub fn can_lose(&self) -> u64 {
        let voters = self.voters();
        let reachable = voters.iter().filter(|id| self.is_reachable(**id)).count();
        reachable.saturating_sub(voters.len() / 2 + 1) as u64
    }

    /// As the leader: whether leadership may be handed to a voter. An unreachable voter, or one
    /// that lacks much of the log, cannot take over, and the cluster would accept no writes until
    /// the attempt times out.
    pub(super) fn may_take_over(&self, id: u64) -> bool {
        id != self.me
            && self.voters().contains(&id)
            && self.is_reachable(id)
            && (self.has_caught_up(id) || mutant!("prefer-those-behind"))
    }

    /// As the leader: of the voters that may take over, the one with the most complete log.
    pub(super) fn best_successor(&self) -> Option<u64> {
        let fit = self
            .voters()
            .into_iter()
            .filter(|id| self.may_take_over(*id));
        fit.min_by_key(|id| (self.lag(*id), *id))
    }

    /// How many committed entries are not applied here yet.
    pub fn apply_lag(&self) -> u64 {
        let committed = self.raft_metrics(|metrics| index(metrics.cluster_committed));
        let applied = self.views.applied_index();
        committed.unwrap_or(0).saturating_sub(applied.unwrap_or(0))
    }

    /// A log index, with the epoch of this cluster's history.
    pub(crate) fn place(&self, index: u64) -> PlacementIndex {
        PlacementIndex {
            epoch: self.identity.epoch,
            index,
        }
    }

    /// The position of this node.
    pub(crate) fn position(&self) -> Position {
        // Read the staleness first, so that the state is at least as fresh as reported.
        let staleness = self.freshness.staleness();
        self.position_at(self.views.applied_index(), staleness)
    }

    fn position_at(&self, applied: Option<u64>, staleness: Option<Duration>) -> Position {
        Position {
            index: Some(self.place(applied.unwrap_or(0))),
            node: self.me,
            known_leader: self.leader_id(),
            staleness,
        }
    }

    /// The current state of this node.
    pub(crate) fn view(&self) -> View {
        // Read the staleness first, as in `position`.
        let staleness = self.freshness.staleness();
        let applied = self.views.current();
        View {
            position: self.position_at(applied.index(), staleness),
            state: applied.cluster.clone().into(),
        }
    }

    /// Waits until this node has applied the log up to `index`.
    pub(super) async fn apply_up_to(
        &self,
        index: u64,
        deadline: Instant,
    ) -> Result<(), Unavailable> {
        match timeout_at(deadline, self.views.wait_applied(index)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(stopped)) => Err(Unavailable::nothing_committed(stopped.to_string())),
            Err(_) => Err(Unavailable::nothing_committed(format!(
                "this node has applied the log up to {} and did not reach {index} in time",
                self.views.applied_index().unwrap_or(0)
            ))),
        }
    }

    /// Why no leader has answered, as text.
    pub(super) fn without_leader(&self) -> String {
        match self.failure() {
            Some(failure) => format!("this node is quarantined: {failure}"),
            None if self.is_removed() => REMOVED.to_owned(),
            None => match self.leader_id() {
                Some(leader) => {
                    format!("the leader, node {leader}, did not confirm in time that it leads")
                }
                None => "no leader is known".to_owned(),
            },
        }
    }
}
