//! Every metric there is: its name, type, unit, labels and help, once. `/metrics` is written from
//! these, and `docs/metrics.md` too.

use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// One metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metric {
    /// Without unit and without `_total`.
    pub(crate) base: &'static str,
    pub(crate) kind: MetricType,
    pub(crate) unit: Option<Base>,
    /// What tells its series apart.
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

/// The base units in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    Seconds,
    Bytes,
}

impl Base {
    pub(crate) const SECONDS: &'static Unit = &Unit::Seconds;
    pub(crate) const BYTES: &'static Unit = &Unit::Bytes;

    pub(crate) fn unit(self) -> &'static Unit {
        match self {
            Self::Seconds => Self::SECONDS,
            Self::Bytes => Self::BYTES,
        }
    }
}

impl Metric {
    /// Its name as Prometheus shows it.
    #[cfg(test)]
    pub(crate) fn name(&self) -> String {
        let unit = self.unit.map_or("", |unit| match unit {
            Base::Seconds => "_seconds",
            Base::Bytes => "_bytes",
        });
        let total = match self.kind {
            MetricType::Counter => "_total",
            _ => "",
        };
        format!("{}{unit}{total}", self.base)
    }
}

const fn metric(
    base: &'static str,
    kind: MetricType,
    unit: Option<Base>,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric {
        base,
        kind,
        unit,
        labels,
        help,
    }
}

macro_rules! unit {
    (none) => {
        None
    };
    (seconds) => {
        Some(Base::Seconds)
    };
    (bytes) => {
        Some(Base::Bytes)
    };
}

macro_rules! catalog {
    ($($name:ident = $base:literal $kind:ident $unit:ident [$($label:literal),*] $help:literal;)*) => {
        $(pub(crate) const $name: Metric = metric(
            $base,
            MetricType::$kind,
            unit!($unit),
            &[$($label),*],
            $help,
        );)*

        /// All of them, in the order in which they are written.
        #[cfg(test)]
        pub(crate) const ALL: &[Metric] = &[$($name),*];
    };
}

catalog! {
    BUILD_INFO = "placement_build_info" Gauge none ["version"]
        "Always 1; the label has the version of the binary";
    HTTP_REQUEST_DURATION = "placement_http_request_duration" Histogram seconds ["method", "route", "status"]
        "Time to answer requests of the REST API; route is none if no route matches";
    HTTP_CONNECTIONS = "placement_http_connections" Gauge none []
        "Open connections of the REST API";
    READ_ROUNDS = "placement_read_rounds" Counter none []
        "Questions to the leader for linearizable reads";
    READ_ROUNDS_FAILED = "placement_read_rounds_failed" Counter none []
        "Questions to the leader without an answer";
    READ_ROUNDS_DURATION = "placement_read_rounds_duration" Counter seconds []
        "Time spent on answered questions to the leader";
    READS_LINEARIZED = "placement_reads_linearized" Counter none []
        "Reads served by questions to the leader";
    HTTP_CALLERS_REFUSED = "placement_http_callers_refused" Counter none ["limit"]
        "Requests answered 429, by the bound of [callers] or [[partitions]] that they exceed";
    KEYSTONE_WAITING = "placement_keystone_waiting" Gauge none []
        "Tokens that wait for their validation by Keystone; 0 with other strategies of [auth]";
    POLICY_REFUSED = "placement_policy_refused" Gauge none []
        "1 while changed policy files cannot be used and the previous rules are in force";
    POLICY_MISTAKES = "placement_policy_mistakes" Gauge none []
        "Mistakes in the policy files in force; the log names them";
    LOG_LINES_DROPPED = "placement_log_lines_dropped" Counter none []
        "Log lines dropped because standard error was not read in time";
    AUDIT_RECORDS = "placement_audit_records" Counter none []
        "Audit records written";
    AUDIT_WRITTEN = "placement_audit_written" Counter bytes []
        "Size of these records";
    AUDIT_RECORDS_LOST = "placement_audit_records_lost" Counter none []
        "Audit records lost, for lack of room in their queue or because the node stopped";
    AUDIT_FAILED = "placement_audit_failed" Gauge none []
        "1 while audit records cannot be written";
    AUDIT_SYNC_DURATION = "placement_audit_sync_duration" Histogram seconds []
        "Time to sync audit records, for which writes wait";
    CERTIFICATE_END = "placement_certificate_end_timestamp" Gauge seconds ["door"]
        "When the certificate of a listener (api, peer, admin) or its authority ends, since 1970";
    DISK_USED = "placement_disk_used" Gauge bytes []
        "Files in the data directory";
    DISK_FREE = "placement_disk_free" Gauge bytes []
        "Free space on the disk of the data directory; absent if unknown";
    SITE = "placement_site" Gauge none ["region", "zone", "name"]
        "Always 1; the labels have this node's site and name";
    PEER_ROUND_TRIP = "placement_peer_round_trip" Gauge seconds ["peer"]
        "Round trip to another node, a smoothed mean; each node measures voters, the leader all nodes";
    ROUND_TRIP_TOO_LONG = "placement_round_trip_too_long" Gauge none []
        "1 while the round trip to a voter is too long for the election times; set [raft] round_trip_ms";
    CLOCK_AHEAD = "placement_clock_ahead" Gauge seconds []
        "How far this node's clock is ahead of what the clocks of a majority of the voters have reached; beyond 5 s a leader uses their time";
    PEER_SENT = "placement_peer_sent" Counter bytes ["peer"]
        "Sent to another node";
    PEER_SENT_PLAIN = "placement_peer_sent_plain" Counter bytes ["peer"]
        "Sent to another node, before compression";
    PEER_FRAMES_DAMAGED = "placement_peer_frames_damaged" Counter none []
        "Damaged frames received from nodes; each ended its connection";
    MEMBER = "placement_member" Gauge none []
        "1 if this node belongs to a cluster";
    REMOVED = "placement_removed" Gauge none []
        "1 if this node was removed from its cluster";
    FEATURE_LEVEL = "placement_feature_level" Gauge none []
        "The feature level of the cluster, as applied by this node";
    RAFT_TERM = "placement_raft_term" Gauge none []
        "The term";
    RAFT_LEADS = "placement_raft_leads" Gauge none []
        "1 if this node leads";
    RAFT_LEADER = "placement_raft_leader" Gauge none []
        "The number of the leader, 0 if none is known";
    REPLACEMENTS = "placement_replacements" Counter none []
        "Members that this node, as the leader, has replaced: by a join token or the autopilot";
    GIVEN_UP_STREAMS = "placement_raft_given_up_streams" Counter none []
        "How often this node, as the leader, gave up sending entries to a member that lacked more than twice [raft] snapshot_after, in favour of a snapshot";
    RAFT_LEADER_CHANGES = "placement_raft_leader_changes" Counter none []
        "Changes of the leader, or losses of it, seen since the start";
    RAFT_LAST_LOG_INDEX = "placement_raft_last_log_index" Gauge none []
        "The last entry of the log of this node";
    RAFT_COMMITTED_INDEX = "placement_raft_committed_index" Gauge none []
        "The last entry known to be committed";
    RAFT_APPLIED_INDEX = "placement_raft_applied_index" Gauge none []
        "The last entry applied";
    RAFT_SNAPSHOT_INDEX = "placement_raft_snapshot_index" Gauge none []
        "The last entry up to which the log may be cut";
    RAFT_SNAPSHOTS_FAILED = "placement_raft_snapshots_failed" Counter none []
        "Snapshots that could not be written or flushed; retried";
    RAFT_SNAPSHOTS_DAMAGED = "placement_raft_snapshots_damaged" Counter none []
        "Snapshots found damaged when they were sent, and written again";
    RAFT_PURGED_INDEX = "placement_raft_purged_index" Gauge none []
        "The last entry removed from the log";
    RAFT_FOLLOWER_LAG = "placement_raft_follower_lag" Gauge none ["node"]
        "Log entries that a node lacks; on the leader only";
    BACKUP_LAST = "placement_backup_last_timestamp" Gauge seconds []
        "Time of the last good backup of [backup], since 1970; 0 without one";
    BACKUP_LOG_INDEX = "placement_backup_log_index" Gauge none []
        "The last entry of the log kept with the backups";
    BACKUP_OVERDUE = "placement_backup_overdue" Gauge none []
        "1 if no good backup of [backup] was made within twice every_s";
    BACKUP_LOG_GAPS = "placement_backup_log_gaps" Counter none []
        "Gaps in the log kept with the backups, since the start";
    BACKUP_FAILURES = "placement_backup_failures" Counter none []
        "Failures to make backups of [backup] or to keep entries; retried";
    BACKUP_COPIED = "placement_backup_copied_timestamp" Gauge seconds []
        "When the store of [backup_s3] last had a copy of every backup and the log, since 1970; 0 if not since the start";
    BACKUP_COPY_FAILURES = "placement_backup_copy_failures" Counter none []
        "Failed copies to the store of [backup_s3]; retried";
    STORAGE_FAILED = "placement_storage_failed" Gauge none []
        "1 if the disk has failed or holds what this version cannot read, or a vital task has ended";
    DISK_WAIT = "placement_disk_wait" Gauge seconds []
        "How long the current call to the disk has taken so far; 0 without one";
    STALENESS = "placement_staleness" Gauge seconds []
        "Upper bound of the age of this node's state; absent if unknown";
    ROCKSDB_WAL = "placement_rocksdb_wal" Gauge bytes ["db"]
        "Write-ahead log files";
    ROCKSDB_MEMTABLE = "placement_rocksdb_memtable" Gauge bytes ["db"]
        "Write buffers in memory";
    ROCKSDB_SST = "placement_rocksdb_sst" Gauge bytes ["db"]
        "Sorted files";
    ROCKSDB_PENDING_COMPACTION = "placement_rocksdb_pending_compaction" Gauge bytes ["db"]
        "Bytes that compactions must rewrite";
    ROCKSDB_BACKGROUND_ERRORS = "placement_rocksdb_background_errors" Counter none ["db"]
        "Errors of flushes and compactions since start";
    ROCKSDB_BLOCK_CACHE = "placement_rocksdb_block_cache" Gauge bytes []
        "Block cache in use; both databases share it";
    LOG_SYNC_DURATION = "placement_log_sync_duration" Histogram seconds []
        "Time to sync the log";
    LOG_ENTRIES_SYNCED = "placement_log_entries_synced" Counter none []
        "Log entries synced";
    APPLY_DURATION = "placement_apply_duration" Histogram seconds []
        "Time to apply a batch of log entries";
    LOG_ENTRIES_APPLIED = "placement_log_entries_applied" Counter none []
        "Log entries applied";
    MODEL_TREES = "placement_model_trees" Gauge none []
        "Provider trees";
    MODEL_PROVIDERS = "placement_model_providers" Gauge none []
        "Resource providers";
    MODEL_CONSUMERS = "placement_model_consumers" Gauge none []
        "Consumers";
    MODEL_RESOURCE_CLASSES = "placement_model_resource_classes" Gauge none []
        "Resource classes";
    MODEL_TRAITS = "placement_model_traits" Gauge none []
        "Traits";
    PARTITION_REQUESTS = "placement_partition_requests" Counter none ["partition"]
        "Requests answered, by partition other than the default one";
    PARTITION_PROVIDERS = "placement_partition_providers" Gauge none ["partition"]
        "Resource providers, by partition other than the default one";
    PARTITION_CONSUMERS = "placement_partition_consumers" Gauge none ["partition"]
        "Consumers, by partition other than the default one";
    PROCESS_RESIDENT_MEMORY = "process_resident_memory" Gauge bytes []
        "Resident memory of the process";
    PROCESS_OPEN_FDS = "process_open_fds" Gauge none []
        "Open file descriptors of the process";
    PROCESS_MAX_FDS = "process_max_fds" Gauge none []
        "Limit of open file descriptors; absent without a limit";
}
