//! Status, members, join tokens, partitions, checks and backups: JSON of `/v1` of the admin
//! listener.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Current Raft role of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeRole {
    /// The leader, which accepts writes.
    Leader,
    /// A voter that follows a leader.
    Follower,
    /// A voter that campaigns for leadership.
    Candidate,
    /// A learner, which replicates without a vote.
    Learner,
    /// The node belongs to no cluster yet.
    #[default]
    Waiting,
    /// The node was removed from its cluster.
    Removed,
    /// The node is stopping, or its Raft core has stopped.
    Shutdown,
}

/// Role of a node in the membership.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberRole {
    /// Counts towards the majority.
    Voter,
    /// Receives the log but does not count.
    #[default]
    Learner,
}

/// A member, as known to the asked node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    /// Node number, never reused after a removal.
    pub id: u64,
    /// Name of the node.
    pub name: String,
    /// Role: voter or learner.
    pub role: MemberRole,
    /// Address of the peer listener, `host:port`.
    pub peer: String,
    /// Address of the REST API, `host:port`.
    pub api: String,
    /// Address of the admin listener, `host:port`; empty if it is local only.
    pub admin: String,
    /// Region; empty if not configured.
    pub region: String,
    /// Zone of the region; empty if not configured.
    pub zone: String,
    /// Last log index that is replicated to this node; only the leader reports it.
    pub matched: Option<u64>,
    /// Error of the last connection attempt of the asked node.
    pub unreachable: Option<String>,
    /// Number of the member that replaces it.
    pub replaced_by: Option<u64>,
}

/// Measured round trip to another node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRoundTrip {
    /// Number of the other node.
    pub node: u64,
    /// Minimum of the last one to two minutes, in milliseconds: the network latency.
    pub ms: f64,
    /// Smoothed mean in milliseconds, including queueing.
    pub mean_ms: f64,
}

/// A follower that acknowledges log entries late, as measured by the leader. Times are in
/// milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlowFollower {
    /// Number of the follower.
    pub node: u64,
    /// Time from sending log entries to their acknowledgement, in most seconds of the last minute.
    pub ms: f64,
    /// Round trip of its link, without queueing.
    pub round_trip_ms: f64,
    /// Number of the follower that acknowledges fastest.
    pub fastest: u64,
    /// The same time as `ms`, of that follower.
    pub fastest_ms: f64,
}

/// Status that a node reports about itself. Indexes are Raft log indexes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// Number of this node.
    pub node_id: u64,
    /// UUID of the cluster; `None` before it is formed or joined.
    pub cluster_id: Option<String>,
    /// Raft role of the node.
    pub role: NodeRole,
    /// Raft term of the node.
    pub term: u64,
    /// Number of the known leader.
    pub leader: Option<u64>,
    /// Index of the last log entry.
    pub last_log: Option<u64>,
    /// Index of the last entry known to be committed.
    pub committed: Option<u64>,
    /// Index of the last applied entry.
    pub applied: Option<u64>,
    /// Index of the last entry in the newest snapshot.
    pub snapshot: Option<u64>,
    /// Index of the last purged entry.
    pub purged: Option<u64>,
    /// Reason why the disk is unusable, if it is.
    pub storage_failure: Option<String>,
    /// Number of the row format, a dot, and the digest of the state. Nodes with an equal `applied`
    /// and the same format have equal digests.
    pub digest: Option<String>,
    /// Feature level of the cluster, as applied by this node.
    pub level: Option<u32>,
    /// Highest feature level that this node supports.
    pub level_max: u32,
    /// Version of the binary.
    pub version: String,
    /// Whether the node is ready and a leader has just confirmed a read. (`/readyz` stays 200 for
    /// `[cluster] wait_ms` longer.)
    pub ready: bool,
    /// Whether a leader has just confirmed a read. Unlike `ready`, it is true on a drained node.
    pub confirmed: bool,
    /// Reason why it is not ready.
    pub not_ready: Option<String>,
    /// Time of the last successful scheduled backup, in seconds since 1970.
    pub last_backup: Option<u64>,
    /// Whether it takes scheduled backups.
    pub makes_backups: bool,
    /// Problem of the scheduled backups.
    pub backup_problem: Option<String>,
    /// Settings that must be equal on all nodes, by `section.key`, and digests of the policies.
    pub settings: BTreeMap<String, String>,
    /// Part of the configuration that does not match the partitions of the cluster.
    pub routing_problem: Option<String>,
    /// Size of the files in the data directory in bytes, if known.
    pub disk_used_bytes: Option<u64>,
    /// Free bytes on the disk.
    pub disk_free_bytes: Option<u64>,
    /// Problem of the disk if it is nearly full. Additions are refused while a majority of the
    /// voters has this problem.
    pub disk_problem: Option<String>,
    /// Number of answered requests in each minute of the last hour, oldest first, and the number of
    /// these that were answered with 503.
    pub requests: Vec<(u64, u64)>,
    /// Expiry of the certificate or of its authority, by listener, in seconds since 1970.
    pub certificate_ends: BTreeMap<String, u64>,
    /// When the node's certificate for other nodes expired (RFC 3339), if it has: the other nodes
    /// then refuse new connections with this node.
    pub peer_certificate_expired: Option<String>,
    /// Problem of the certificates.
    pub certificate_problem: Option<String>,
    /// Names of all partitions except the default one.
    pub partitions: Vec<String>,
    /// Members, as known to this node.
    pub members: Vec<Member>,
    /// Measured round trips to other members.
    pub round_trips: Vec<MeasuredRoundTrip>,
    /// Followers that are much slower than the fastest follower; only the leader reports them.
    pub slow_followers: Vec<SlowFollower>,
    /// Problem of election timeouts that do not fit the round trips.
    pub round_trip_problem: Option<String>,
    /// Problem of the wall clocks of this or another node.
    pub clock_problem: Option<String>,
}

/// Body of `POST /v1/init`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InitialMembers {
    /// Node numbers with the addresses of the peer listeners, `host:port`. If empty, the asked node
    /// forms a cluster of its own.
    pub members: BTreeMap<u64, String>,
}

/// Body of `POST /v1/leader`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LeadershipTransfer {
    /// Number of the next leader; `None` if the leader chooses it.
    pub to: Option<u64>,
}

/// Response of `POST /v1/leader`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewLeader {
    /// Number of the new leader.
    pub leader: u64,
}

/// Response of `POST /v1/drain`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Drained {
    /// Number of the leader after the drain, if known.
    pub leader: Option<u64>,
}

/// Body of `POST /v1/join-tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewJoinToken {
    /// Validity of the token in seconds; an hour by default.
    pub ttl_s: u64,
    /// Number of the node to replace, which must be unreachable.
    pub replaces: Option<u64>,
    /// Whether to replace that node although it is reachable.
    pub though_reachable: bool,
}

impl Default for NewJoinToken {
    fn default() -> Self {
        Self {
            ttl_s: 3600,
            replaces: None,
            though_reachable: false,
        }
    }
}

/// Response of `GET /v1/join-tokens`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinTokens {
    /// Recent tokens.
    pub join_tokens: Vec<JoinToken>,
}

/// A token that lets one node join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinToken {
    /// Number of the node that joins with it.
    pub id: u64,
    /// The token itself; only in the response to its creation.
    pub token: Option<String>,
    /// Expiry in seconds since 1970.
    pub until: i64,
    /// State: `open`; `used`, a node has presented it; `joined`, the node is a member; `expired`.
    pub state: String,
    /// Number of the node to be replaced, until the replacement is complete.
    pub replaces: Option<u64>,
}

/// Body of `POST /v1/partitions`: name and routes of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewPartition {
    /// Name of the partition.
    pub name: String,
    /// Hosts, as in [`PartitionRoutes`].
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Path prefixes, as in [`PartitionRoutes`].
    #[serde(default)]
    pub prefixes: Vec<String>,
}

/// Body of `PUT /v1/partitions/{name}`. The partition gets the requests to these hosts and those
/// below these prefixes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PartitionRoutes {
    /// Host names without port.
    pub hosts: Vec<String>,
    /// Path prefixes, such as `/north/placement`.
    pub prefixes: Vec<String>,
}

/// A partition: a separate cloud in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Name of the partition.
    pub name: String,
    /// Number of the partition in the log; `None` if only the configuration of the asked node names
    /// it.
    pub id: Option<u16>,
    /// Time of creation in microseconds since 1970; `None` for the default partition.
    pub created_at: Option<i64>,
    /// Number of resource providers.
    pub providers: u64,
    /// Number of consumers in the partition.
    pub consumers: u64,
    /// Region of the cloud in the configuration of the asked node; empty if not configured.
    pub region: String,
    /// Requests that it gets: its routes, and its listener on the asked node.
    pub ways: Vec<String>,
}

/// Result of the check of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// Number of the node.
    pub node_id: u64,
    /// Index of the last entry of the checked state.
    pub applied: Option<u64>,
    /// Digests of the state by log index.
    pub digests: BTreeMap<u64, String>,
    /// Number of resource providers.
    pub providers: u64,
    /// Number of consumers in all partitions.
    pub consumers: u64,
    /// Findings that violate an invariant.
    pub wrong: Vec<Finding>,
    /// Unusual but valid findings.
    pub noticed: Vec<Finding>,
}

/// Findings of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Description of the finding.
    pub what: String,
    /// Number of findings of this kind.
    pub count: u64,
    /// The first few findings.
    pub examples: Vec<String>,
}

/// Maximum size of an imported backup, in bytes.
pub const IMPORT_BYTES_MAX: u64 = 2 << 30;

/// Result of an import into a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportReport {
    /// Number of resource providers in the partition.
    pub providers: u64,
    /// Number of consumers in the partition.
    pub consumers: u64,
    /// Number of commands of the import.
    pub commands: u64,
    /// Digest of the content of the backup, as printed by `placementd import`.
    pub digest_of_backup: String,
    /// Digest of the content of the partition, without standard names that the backup lacks.
    pub digest: String,
}

/// Description of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupReport {
    /// UUID of the source cluster.
    pub cluster_id: String,
    /// Epoch of the source cluster.
    pub epoch: u64,
    /// Index of the last included entry.
    pub index: u64,
    /// Raft term of that entry.
    pub term: u64,
    /// Digest of the state; every node has the same digest at this entry.
    pub digest: String,
    /// Time of the last command, as RFC 3339.
    pub time: Option<String>,
    /// Feature level of the source cluster.
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
