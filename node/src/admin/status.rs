//! What a node says of itself to operators.

use openraft::ServerState;
use openraft::async_runtime::watch::WatchReceiver;
use serde::Serialize;

use crate::cluster::formation::Formation;
use crate::disk_space::DiskSpace;
use crate::health::HealthChecks;

/// What a node is in the Raft group right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeRole {
    /// Takes writes to the log.
    Leader,
    /// Votes and replicates.
    Follower,
    /// Asks for votes.
    Candidate,
    /// Replicates without a vote.
    Learner,
    /// Belongs to no cluster yet.
    Waiting,
    /// Was removed from its cluster.
    Removed,
    /// Takes no part any more: its disk or its replication has failed, or it is stopping.
    Shutdown,
}

/// What the membership says a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberRole {
    /// Counts for the majority.
    Voter,
    /// Receives the log, does not count.
    Learner,
}

/// One member, as the asked node knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemberStatus {
    /// The node's number.
    pub id: u64,
    /// Voter or learner.
    pub role: MemberRole,
    /// Where the other nodes reach it, `host:port`.
    pub peer: String,
    /// Where clients reach its REST API, `host:port`.
    pub api: String,
    /// Where operators reach it, `host:port`.
    pub admin: String,
    /// The last entry of the leader's log that the node is known to have; only the leader can say.
    pub matched: Option<u64>,
}

/// What a node says of itself. Indexes are Raft log indexes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeStatus {
    /// This node.
    pub node_id: u64,
    /// The cluster it belongs to; `None` before it is formed or joined.
    pub cluster_id: Option<String>,
    /// What it is.
    pub role: NodeRole,
    /// Its Raft term.
    pub term: u64,
    /// The leader it knows.
    pub leader: Option<u64>,
    /// The last entry of its log.
    pub last_log: Option<u64>,
    /// The last entry it knows to be committed.
    pub committed: Option<u64>,
    /// The last entry it has applied.
    pub applied: Option<u64>,
    /// The last entry its newest snapshot covers.
    pub snapshot: Option<u64>,
    /// The last entry purged from its log.
    pub purged: Option<u64>,
    /// Why its disk cannot be used, if so.
    pub storage_failure: Option<String>,
    /// The digest of its state, in hexadecimal digits: equal on all nodes at an equal `applied`.
    pub digest: Option<String>,
    /// The membership it knows.
    pub members: Vec<MemberStatus>,
}

/// [`NodeStatus`] with what takes a moment to find out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeReport {
    /// What the node knows at once.
    #[serde(flatten)]
    pub status: NodeStatus,
    /// The version of its binary.
    pub version: &'static str,
    /// Whether it is ready, as `/readyz` says.
    pub ready: bool,
    /// Why not.
    pub not_ready: Option<String>,
    /// Bytes of the files in its data directory.
    pub disk_used_bytes: u64,
    /// Bytes that are free on that disk; `None` if the system does not say.
    pub disk_free_bytes: Option<u64>,
}

impl NodeReport {
    pub(crate) async fn of(formation: &Formation, checks: &HealthChecks) -> Self {
        let not_ready = checks.not_ready().await.err();
        let space = DiskSpace::of(formation.config.data_dir.clone()).await;
        Self {
            status: NodeStatus::of(formation),
            version: env!("CARGO_PKG_VERSION"),
            ready: not_ready.is_none(),
            not_ready,
            disk_used_bytes: space.used_bytes,
            disk_free_bytes: space.free_bytes,
        }
    }
}

impl NodeStatus {
    pub(crate) fn of(formation: &Formation) -> Self {
        let Some(group) = formation.seat.now() else {
            return Self {
                node_id: formation.config.node_id,
                cluster_id: None,
                role: NodeRole::Waiting,
                term: 0,
                leader: None,
                last_log: None,
                committed: None,
                applied: None,
                snapshot: None,
                purged: None,
                storage_failure: None,
                digest: None,
                members: Vec::new(),
            };
        };
        let metrics = {
            let receiver = group.raft.metrics();
            let metrics = receiver.borrow_watched();
            metrics.clone()
        };
        let applied = group.views.current();
        let failure = group.failure();
        let membership = metrics.membership_config.membership();
        let voters: Vec<u64> = membership.voter_ids().collect();
        let members = membership
            .nodes()
            .map(|(id, member)| MemberStatus {
                id: *id,
                role: match voters.contains(id) {
                    true => MemberRole::Voter,
                    false => MemberRole::Learner,
                },
                peer: member.peer.clone(),
                api: member.api.trim_start_matches("http://").to_owned(),
                admin: member.admin.clone(),
                matched: match *id == group.me {
                    true => metrics.replication.as_ref().and(metrics.last_log_index),
                    false => metrics
                        .replication
                        .as_ref()
                        .and_then(|replication| *replication.get(id)?)
                        .map(|id| id.index()),
                },
            })
            .collect();
        Self {
            node_id: group.me,
            cluster_id: Some(group.identity.cluster.to_string()),
            role: match metrics.state {
                _ if failure.is_some() => NodeRole::Shutdown,
                _ if group.is_removed() => NodeRole::Removed,
                ServerState::Leader => NodeRole::Leader,
                ServerState::Follower => NodeRole::Follower,
                ServerState::Candidate => NodeRole::Candidate,
                ServerState::Learner => NodeRole::Learner,
                ServerState::Shutdown => NodeRole::Shutdown,
            },
            term: metrics.current_term,
            leader: group.leader().map(|leader| leader.id),
            last_log: metrics.last_log_index,
            committed: metrics.local_committed.map(|id| id.index()),
            applied: applied.index(),
            snapshot: metrics.snapshot.map(|id| id.index()),
            purged: metrics.purged.map(|id| id.index()),
            storage_failure: failure.map(|words| words.to_string()),
            digest: Some(format!("{:032x}", applied.digest().0)),
            members,
        }
    }
}
