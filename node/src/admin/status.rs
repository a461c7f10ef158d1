//! What a node says of itself to operators.

use std::collections::BTreeMap;

use openraft::ServerState;
use placement_model::Cluster;
use placement_model::types::{PartitionName, Route};
use serde::{Deserialize, Serialize};

use super::Admin;
use crate::cluster::bootstrap::Bootstrap;
use crate::cluster::round_trips::too_long;
use crate::config::{Config, PartitionSection};
use crate::disk_space::DiskSpace;
use crate::topology::ms;

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
    /// What it is called.
    pub name: String,
    /// Voter or learner.
    pub role: MemberRole,
    /// Where the other nodes reach it, `host:port`.
    pub peer: String,
    /// Where clients reach its REST API, `host:port`.
    pub api: String,
    /// Where operators reach it, `host:port`; empty: nowhere but on its machine.
    pub admin: String,
    /// The region in which it stands, as it says itself; empty: it names none.
    pub region: String,
    /// The zone of that region, likewise.
    pub zone: String,
    /// The last entry of the leader's log that the node is known to have; only the leader can say.
    pub matched: Option<u64>,
}

/// The way to another node, measured there and back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRoundTrip {
    /// The other node.
    pub node: u64,
    /// The shortest of the last minute or two, in milliseconds: what the distance takes.
    pub ms: f64,
    /// The smoothed mean, in milliseconds, with what waits on the way.
    pub mean_ms: f64,
}

/// What a node says of itself. Indexes are Raft log indexes.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    /// The digest of its state: equal on all nodes at an equal `applied`, if they agree on what is
    /// before the point, the form of the rows that it was computed over.
    pub digest: Option<String>,
    /// The feature level of the cluster, as far as it has applied it.
    pub level: Option<u32>,
    /// The highest feature level to which it agrees.
    pub level_max: u32,
    /// The partitions beside the default one, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<String>,
    /// The membership it knows.
    pub members: Vec<MemberStatus>,
    /// The ways to those members that it has measured.
    pub round_trips: Vec<MeasuredRoundTrip>,
    /// Why the times of elections do not fit them, if so.
    pub round_trip_problem: Option<String>,
    /// How far its wall clock is ahead of those of a majority of the voters, if it is too far.
    pub clock_problem: Option<String>,
}

/// [`NodeStatus`] with what takes a moment to find out.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    /// When its last good backup was made, in seconds since 1970, if `[backup]` has it make any.
    pub last_backup: Option<u64>,
    /// Whether `[backup]` has it make any.
    pub makes_backups: bool,
    /// What is wrong with the backups of `[backup]`: they are overdue, fail, or the kept log has a gap.
    pub backup_problem: Option<String>,
    /// By `section.key`, the values of its settings that are to be the same on all nodes, and digests of the policies.
    pub settings: BTreeMap<String, String>,
    /// What of its configuration does not fit the partitions of the cluster.
    pub routing_problem: Option<String>,
    /// Bytes of the files in its data directory.
    pub disk_used_bytes: u64,
    /// Bytes that are free on that disk; `None` if the system does not say.
    pub disk_free_bytes: Option<u64>,
}

impl NodeReport {
    pub(super) async fn of(admin: &Admin) -> Self {
        let bootstrap = &*admin.bootstrap;
        let not_ready = admin.checks.not_ready().await.err();
        let mut settings = bootstrap.config.shared();
        for (name, policy) in &admin.policies {
            let path = match name.as_str() {
                PartitionName::DEFAULT => "policy".to_owned(),
                name => format!("partitions.{name}.policy"),
            };
            settings.insert(path, format!("rules {}", policy.digest()));
        }
        let space = DiskSpace::of(bootstrap.config.data_dir.clone()).await;
        let running = bootstrap.slot.get();
        Self {
            status: NodeStatus::of(bootstrap),
            version: env!("CARGO_PKG_VERSION"),
            ready: not_ready.is_none(),
            not_ready,
            makes_backups: bootstrap.config.backup.directory.is_some(),
            settings,
            routing_problem: (running.as_ref()).and_then(|running| {
                let applied = running.replica.views.current();
                routing_problem(&bootstrap.config, &applied.cluster)
            }),
            last_backup: running.as_ref().and_then(|running| running.kept.last()),
            backup_problem: running.and_then(|running| running.kept.problem()),
            disk_used_bytes: space.used_bytes,
            disk_free_bytes: space.free_bytes,
        }
    }
}

/// What of a configuration does not fit the partitions that there are.
fn routing_problem(config: &Config, cluster: &Cluster) -> Option<String> {
    let prefix = config.public_address().ok()?.prefix;
    let covering = cluster.partitions().find_map(|(_, row, _)| {
        let covers = |route: &&Route| match route {
            Route::Prefix(own) => own.path().covers(&prefix),
            Route::Host(_) => false,
        };
        let route = row.routing.routes.iter().find(covers)?;
        Some((row.name.clone(), route.clone()))
    });
    if let Some((name, route)) = covering {
        return Some(format!(
            "[api] prefix {prefix} is below {route} of partition {name}: requests for either are refused; correct \
             [api] prefix, or give the partition another prefix"
        ));
    }
    let unknown = |section: &&PartitionSection| cluster.partition_named(&section.name).is_none();
    let section = config.partitions.iter().find(unknown)?;
    Some(format!(
        "[[partitions]] names {name}, which the cluster does not have: `placementctl partitions create {name}` makes \
         it, or take the table out",
        name = section.name
    ))
}

impl NodeStatus {
    pub(crate) fn of(bootstrap: &Bootstrap) -> Self {
        let Some(running) = bootstrap.slot.get() else {
            return Self {
                node_id: bootstrap.config.node_id,
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
                level: None,
                level_max: bootstrap.peers.level().0,
                partitions: Vec::new(),
                members: Vec::new(),
                round_trips: Vec::new(),
                round_trip_problem: None,
                clock_problem: None,
            };
        };
        let replica = &running.replica;
        let raft = replica.raft_status();
        let applied = replica.views.current();
        let failure = replica.failure();
        let matched = |id: u64| {
            let matched = raft.matched.as_ref()?;
            if id == replica.me {
                raft.last_log
            } else {
                *matched.get(&id)?
            }
        };
        let members = (raft.members.iter())
            .map(|(id, member)| MemberStatus {
                id: *id,
                name: member.name_of(*id).to_string(),
                role: if raft.voters.contains(id) {
                    MemberRole::Voter
                } else {
                    MemberRole::Learner
                },
                peer: member.peer.clone(),
                api: member.api.trim_start_matches("http://").to_owned(),
                admin: member.admin.clone(),
                region: member.site.region.clone(),
                zone: member.site.zone.clone(),
                matched: matched(*id),
            })
            .collect();
        Self {
            node_id: replica.me,
            cluster_id: Some(replica.identity.cluster.to_string()),
            role: match raft.state {
                _ if failure.is_some() => NodeRole::Shutdown,
                _ if replica.is_removed() => NodeRole::Removed,
                ServerState::Leader => NodeRole::Leader,
                ServerState::Follower => NodeRole::Follower,
                ServerState::Candidate => NodeRole::Candidate,
                ServerState::Learner => NodeRole::Learner,
                ServerState::Shutdown => NodeRole::Shutdown,
            },
            term: raft.term,
            leader: raft.leader,
            last_log: raft.last_log,
            committed: raft.committed,
            applied: applied.index(),
            snapshot: raft.snapshot,
            purged: raft.purged,
            storage_failure: failure.map(|words| words.to_string()),
            digest: Some(applied.digest().to_string()),
            level: Some(applied.cluster.level().0),
            level_max: bootstrap.peers.level().0,
            partitions: (applied.cluster.partitions())
                .map(|(_, row, _)| row.name.to_string())
                .collect(),
            members,
            round_trips: (bootstrap.peers.round_trips.all().into_iter())
                .map(|(node, way)| MeasuredRoundTrip {
                    node,
                    ms: ms(way.least),
                    mean_ms: ms(way.mean),
                })
                .collect(),
            round_trip_problem: too_long(replica, &bootstrap.peers.round_trips),
            clock_problem: running.wall.problem(),
        }
    }
}
