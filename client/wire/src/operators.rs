//! Status, members, join tokens, partitions, checks and backups, as `/v1` of the admin listener
//! gives them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What a node is in the Raft group right now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    #[default]
    Waiting,
    /// Was removed from its cluster.
    Removed,
    /// Is stopping or has stopped taking part.
    Shutdown,
}

/// What the membership says a node is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberRole {
    /// Counts for the majority.
    Voter,
    /// Receives the log, does not count.
    #[default]
    Learner,
}

/// One line of the membership as the asked node knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    /// The node's id, never used again after a removal.
    pub id: u64,
    /// What it is called.
    pub name: String,
    /// Voter or learner.
    pub role: MemberRole,
    /// Where the other nodes reach it, `host:port`.
    pub peer: String,
    /// Where clients reach its REST API, `host:port`.
    pub api: String,
    /// Where operators reach its admin listener, `host:port`; empty: nowhere but on its machine.
    pub admin: String,
    /// The region in which it stands; empty: it names none.
    pub region: String,
    /// The zone of that region, likewise.
    pub zone: String,
    /// How far the leader knows this node's log to reach; only the leader can say.
    pub matched: Option<u64>,
    /// Why the asked node could not connect to it when it last tried.
    pub unreachable: Option<String>,
    /// The member that takes its place, after which it is removed.
    pub replaced_by: Option<u64>,
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// This node.
    pub node_id: u64,
    /// The cluster it belongs to; `None` before it is bootstrapped or has joined.
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
    /// The version of its binary.
    pub version: String,
    /// Whether it is ready and a leader has just confirmed a read. (`/readyz` is 200 for `[cluster]
    /// wait_ms` more.)
    pub ready: bool,
    /// Why not.
    pub not_ready: Option<String>,
    /// When its last good backup was made, in seconds since 1970, if it makes any by itself.
    pub last_backup: Option<u64>,
    /// Whether it makes any by itself.
    pub makes_backups: bool,
    /// What is wrong with the backups that it makes by itself.
    pub backup_problem: Option<String>,
    /// By `section.key`, the values of its settings that are to be the same on all nodes, and
    /// digests of the policies.
    pub settings: BTreeMap<String, String>,
    /// What of its configuration does not fit the partitions of the cluster.
    pub routing_problem: Option<String>,
    /// Bytes of the files in its data directory, where they were counted.
    pub disk_used_bytes: Option<u64>,
    /// Bytes that are free on its disk.
    pub disk_free_bytes: Option<u64>,
    /// That its disk is nearly full, so that additions are refused.
    pub disk_problem: Option<String>,
    /// Requests that it has answered in each minute of the last hour, the oldest first, and how
    /// many of these with 503.
    pub requests: Vec<(u64, u64)>,
    /// By listener: when its certificate or the authority of that expires, in seconds since 1970.
    pub certificate_ends: BTreeMap<String, u64>,
    /// What is wrong with its certificates.
    pub certificate_problem: Option<String>,
    /// All partitions but the default one, by name.
    pub partitions: Vec<String>,
    /// The membership it knows.
    pub members: Vec<Member>,
    /// The ways to those members that it has measured.
    pub round_trips: Vec<MeasuredRoundTrip>,
    /// Why the times of elections do not fit them, if so.
    pub round_trip_problem: Option<String>,
    /// Why its wall clock or another node's is wrong, if their times differ too much.
    pub clock_problem: Option<String>,
}

/// A token with which one node joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinToken {
    /// The number that its node has.
    pub id: u64,
    /// The token itself, shown once: when it is made.
    pub token: Option<String>,
    /// When it ends, in seconds since 1970.
    pub until: i64,
    /// `open`; `used`: a node has come with it; `joined`: that is a member; `expired`.
    pub state: String,
    /// In whose place its node comes, as long as it has not.
    pub replaces: Option<u64>,
}

/// A partition: a cloud of its own in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// What stands for it in the log; `None`: the asked node serves it, but the cluster does not
    /// have it.
    pub id: Option<u16>,
    /// When it was made, in microseconds since 1970; `None` for the default one.
    pub created_at: Option<i64>,
    /// Resource providers in it.
    pub providers: u64,
    /// Consumers in it.
    pub consumers: u64,
    /// The region in which its cloud is, as the asked node is configured; empty: it names none.
    pub region: String,
    /// Which requests are its own: by its routes, and by the listener that the asked node has for
    /// it.
    pub ways: Vec<String>,
}

/// What a check of one node's state has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// The node.
    pub node_id: u64,
    /// The last entry of the state that was looked at.
    pub applied: Option<u64>,
    /// By their entries: digests of the node's states.
    pub digests: BTreeMap<u64, String>,
    /// How many providers there are.
    pub providers: u64,
    /// How many consumers there are.
    pub consumers: u64,
    /// What must not be.
    pub wrong: Vec<Finding>,
    /// What may be, and few clouds want.
    pub noticed: Vec<Finding>,
}

/// One kind of finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub what: String,
    /// How often.
    pub count: u64,
    /// The first of them.
    pub examples: Vec<String>,
}

/// The longest backup that is imported into a partition, in bytes.
pub const IMPORT_BYTES_MAX: u64 = 2 << 30;

/// What has become of a backup that was imported into a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportReport {
    /// Resource providers in the partition.
    pub providers: u64,
    /// Consumers in it.
    pub consumers: u64,
    /// The commands that have brought them.
    pub commands: u64,
    /// The digest of the content of the backup, as `placementd import` prints it.
    pub digest_of_backup: String,
    /// That of the partition, without the standard names that the backup lacks.
    pub digest: String,
}

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupReport {
    /// The cluster that it was made of.
    pub cluster_id: String,
    /// The epoch of that cluster.
    pub epoch: u64,
    /// The last entry that it contains.
    pub index: u64,
    /// The term of that entry.
    pub term: u64,
    /// The digest of the state: that of every node at this entry.
    pub digest: String,
    /// The time of the last command, as RFC 3339.
    pub time: Option<String>,
    /// The feature level of the cluster.
    pub feature_level: u32,
}

impl fmt::Display for BackupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "cluster_id: {}", self.cluster_id)?;
        writeln!(f, "epoch: {}", self.epoch)?;
        writeln!(f, "index: {}", self.index)?;
        writeln!(f, "term: {}", self.term)?;
        writeln!(f, "digest: {}", self.digest)?;
        writeln!(f, "time: {}", self.time.as_deref().unwrap_or("none"))?;
        write!(f, "feature_level: {}", self.feature_level)
    }
}
