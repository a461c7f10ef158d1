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
        "Time to answer requests of the REST API; route is none where no route was found";
    HTTP_CONNECTIONS = "placement_http_connections" Gauge none []
        "Open connections of the REST API";
    READ_ROUNDS = "placement_read_rounds" Counter none []
        "Questions to the leader how far reads must be";
    READ_ROUNDS_FAILED = "placement_read_rounds_failed" Counter none []
        "Questions to the leader that got no answer";
    READ_ROUNDS_DURATION = "placement_read_rounds_duration" Counter seconds []
        "Time spent on answered questions to the leader";
    READS_LINEARIZED = "placement_reads_linearized" Counter none []
        "Reads that were served by questions to the leader";
    HTTP_CALLERS_REFUSED = "placement_http_callers_refused" Counter none ["limit"]
        "Requests answered 429, by the setting of [callers] or [[partitions]] that they would have exceeded";
    KEYSTONE_WAITING = "placement_keystone_waiting" Gauge none []
        "Tokens whose look-up in Keystone waits until others are looked up; 0 with other strategies of [auth]";
    POLICY_REFUSED = "placement_policy_refused" Gauge none []
        "1 while the policy files were changed and cannot be used, and the rules from before are in force";
    POLICY_MISTAKES = "placement_policy_mistakes" Gauge none []
        "Mistakes in the policy files whose rules are in force; the log names them";
    LOG_LINES_DROPPED = "placement_log_lines_dropped" Counter none []
        "Lines missing in the log, as standard error was not read in time";
    AUDIT_RECORDS = "placement_audit_records" Counter none []
        "Audit records that were written";
    AUDIT_WRITTEN = "placement_audit_written" Counter bytes []
        "What these records have";
    AUDIT_RECORDS_LOST = "placement_audit_records_lost" Counter none []
        "Audit records that were not kept, for want of room in their queue or as the node stopped";
    AUDIT_FAILED = "placement_audit_failed" Gauge none []
        "1 while audit records cannot be written";
    AUDIT_SYNC_DURATION = "placement_audit_sync_duration" Histogram seconds []
        "Time to sync audit records, which the writes among them wait for";
    CERTIFICATE_END = "placement_certificate_end_timestamp" Gauge seconds ["door"]
        "When the certificate of a door (api, peer, admin) or its authority ends, since 1970";
    DISK_USED = "placement_disk_used" Gauge bytes []
        "Files in the data directory";
    DISK_FREE = "placement_disk_free" Gauge bytes []
        "What the disk of the data directory has left; absent if the system does not say";
    SITE = "placement_site" Gauge none ["region", "zone", "name"]
        "Always 1; the labels say where this node stands and what it is called";
    PEER_ROUND_TRIP = "placement_peer_round_trip" Gauge seconds ["peer"]
        "The way to another node and back, a smoothed mean; each node measures it to each voter, the leader to all";
    ROUND_TRIP_TOO_LONG = "placement_round_trip_too_long" Gauge none []
        "1 while the way to a voter is longer than the times of elections are made for; set [raft] round_trip_ms";
    CLOCK_AHEAD = "placement_clock_ahead" Gauge seconds []
        "How far this node's wall clock is ahead of what the clocks of a majority of the voters have reached; beyond 5 s a leader stamps writes by theirs";
    PEER_SENT = "placement_peer_sent" Counter bytes ["peer"]
        "Calls to another node, as they went out";
    PEER_SENT_PLAIN = "placement_peer_sent_plain" Counter bytes ["peer"]
        "Calls to another node, before some of them were compressed";
    PEER_FRAMES_DAMAGED = "placement_peer_frames_damaged" Counter none []
        "Frames between nodes that arrived damaged here; each ended its connection";
    MEMBER = "placement_member" Gauge none []
        "1 if this node belongs to a cluster";
    REMOVED = "placement_removed" Gauge none []
        "1 if this node was removed from its cluster";
    FEATURE_LEVEL = "placement_feature_level" Gauge none []
        "The feature level of the cluster, as far as this node has applied it";
    RAFT_TERM = "placement_raft_term" Gauge none []
        "The term";
    RAFT_LEADS = "placement_raft_leads" Gauge none []
        "1 if this node leads";
    RAFT_LEADER = "placement_raft_leader" Gauge none []
        "The number of the leader, 0 if none is known";
    REPLACEMENTS = "placement_replacements" Counter none []
        "Members that this node has put into the place of others, as the leader: by a join token, or by the autopilot";
    GIVEN_UP_STREAMS = "placement_raft_given_up_streams" Counter none []
        "How often this node, as the leader, stopped sending entries to a member that lacked more than [raft] snapshot_after + log_keep of them, so that it is sent a snapshot and the log is cut";
    RAFT_LEADER_CHANGES = "placement_raft_leader_changes" Counter none []
        "How often this node has seen another leader or none since it started";
    RAFT_LAST_LOG_INDEX = "placement_raft_last_log_index" Gauge none []
        "The last entry of the log of this node";
    RAFT_COMMITTED_INDEX = "placement_raft_committed_index" Gauge none []
        "The last entry that this node knows to be committed";
    RAFT_APPLIED_INDEX = "placement_raft_applied_index" Gauge none []
        "The last entry that this node has applied";
    RAFT_SNAPSHOT_INDEX = "placement_raft_snapshot_index" Gauge none []
        "The last entry behind which the log may be cut";
    RAFT_SNAPSHOTS_FAILED = "placement_raft_snapshots_failed" Counter none []
        "States that could not be brought to the disk, to cut the log or to be sent; it is tried again";
    RAFT_SNAPSHOTS_DAMAGED = "placement_raft_snapshots_damaged" Counter none []
        "Snapshots of this node that were found damaged when they were sent, and were written anew";
    RAFT_PURGED_INDEX = "placement_raft_purged_index" Gauge none []
        "The last entry that was dropped from the log";
    RAFT_FOLLOWER_LAG = "placement_raft_follower_lag" Gauge none ["node"]
        "Log entries that a node lacks; only the leader knows";
    BACKUP_LAST = "placement_backup_last_timestamp" Gauge seconds []
        "When the last good backup of [backup] was made, since 1970; its age is time() minus this. 0 if none was";
    BACKUP_LOG_INDEX = "placement_backup_log_index" Gauge none []
        "The last entry of the log that is kept with the backups";
    BACKUP_OVERDUE = "placement_backup_overdue" Gauge none []
        "1 if the last good backup of [backup] is more than twice every_s old, or none was made in that time";
    BACKUP_LOG_GAPS = "placement_backup_log_gaps" Counter none []
        "Gaps in the log that is kept with the backups, since the start of the process";
    BACKUP_FAILURES = "placement_backup_failures" Counter none []
        "Backups of [backup] that could not be made, and entries that could not be kept; they are tried again";
    BACKUP_COPIED = "placement_backup_copied_timestamp" Gauge seconds []
        "When the store of [backup_s3] had a copy of every backup and of the log, since 1970; 0 if it has not had since the start of the process";
    BACKUP_COPY_FAILURES = "placement_backup_copy_failures" Counter none []
        "Attempts to copy backups to the store of [backup_s3] that have failed; they are repeated";
    STORAGE_FAILED = "placement_storage_failed" Gauge none []
        "1 if the disk of this node has failed, or holds what this version cannot read, or a task has ended that the node needs";
    DISK_WAIT = "placement_disk_wait" Gauge seconds []
        "How long a call to the disk has been waited for just now; 0 if none is under way";
    STALENESS = "placement_staleness" Gauge seconds []
        "How old the state of this node may be at most; absent as long as it is not known";
    ROCKSDB_WAL = "placement_rocksdb_wal" Gauge bytes ["db"]
        "Write-ahead log files";
    ROCKSDB_MEMTABLE = "placement_rocksdb_memtable" Gauge bytes ["db"]
        "Write buffers in memory";
    ROCKSDB_SST = "placement_rocksdb_sst" Gauge bytes ["db"]
        "Sorted files";
    ROCKSDB_PENDING_COMPACTION = "placement_rocksdb_pending_compaction" Gauge bytes ["db"]
        "What compactions must rewrite";
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
        "Requests answered of each partition beside the default one";
    PARTITION_PROVIDERS = "placement_partition_providers" Gauge none ["partition"]
        "Resource providers of each partition beside the default one";
    PARTITION_CONSUMERS = "placement_partition_consumers" Gauge none ["partition"]
        "Consumers of each partition beside the default one";
    PROCESS_RESIDENT_MEMORY = "process_resident_memory" Gauge bytes []
        "Memory of the process that is in use";
    PROCESS_OPEN_FDS = "process_open_fds" Gauge none []
        "Open file descriptors of the process";
    PROCESS_MAX_FDS = "process_max_fds" Gauge none []
        "Most file descriptors that the process may open; absent without a limit";
}
