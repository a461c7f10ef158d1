//! The catalog of metrics: name, type, unit, labels and help of each. `/metrics` and
//! `docs/metrics.md` are generated from it.

use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// The description of a metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metric {
    /// The name without unit and without `_total`.
    pub(crate) base: &'static str,
    pub(crate) kind: MetricType,
    pub(crate) unit: Option<&'static Unit>,
    /// Names of the labels.
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

const SECONDS: Option<&Unit> = Some(&Unit::Seconds);
const BYTES: Option<&Unit> = Some(&Unit::Bytes);

impl Metric {
    /// The name that Prometheus shows.
    #[cfg(test)]
    pub(crate) fn name(&self) -> String {
        let unit = self.unit.map(|unit| format!("_{}", unit.as_str()));
        let total = match self.kind {
            MetricType::Counter => "_total",
            _ => "",
        };
        format!("{}{}{total}", self.base, unit.unwrap_or_default())
    }
}

macro_rules! catalog {
    ($($name:ident = $base:literal $kind:ident $unit:ident [$($label:literal),*] $help:literal;)*) => {
        $(pub(crate) const $name: Metric = Metric {
            base: $base,
            kind: MetricType::$kind,
            unit: $unit,
            labels: &[$($label),*],
            help: $help,
        };)*

        /// All metrics, in the order of the catalog.
        #[cfg(test)]
        pub(crate) const ALL: &[Metric] = &[$($name),*];
    };
}

catalog! {
    BUILD_INFO = "placement_build_info" Gauge None ["version"]
        "Always 1; the label has the version of the binary";
    HTTP_REQUEST_DURATION = "placement_http_request_duration" Histogram SECONDS ["method", "route", "status"]
        "Time to answer requests of the REST API; route is none if no route matches";
    HTTP_CONNECTIONS = "placement_http_connections" Gauge None []
        "Open connections of the REST API";
    HTTP_IN_FLIGHT = "placement_http_in_flight" Gauge None []
        "Requests of the REST API that are being answered";
    UNAVAILABLE = "placement_unavailable" Counter None ["code"]
        "Requests answered 503, by the code of the error";
    WRITE_REFUSALS = "placement_write_refusals" Counter None ["code"]
        "Writes answered 409, by the code of the error";
    READY = "placement_ready" Gauge None []
        "1 if this node is ready, as in /readyz; a check that takes over 0.25 s reports the \
        value of the previous scrape";
    DRAINED = "placement_drained" Gauge None []
        "1 while this node is drained by an operator";
    READ_ROUNDS = "placement_read_rounds" Counter None []
        "Read-index requests for linearizable reads; each may serve several reads";
    READ_ROUNDS_FAILED = "placement_read_rounds_failed" Counter None []
        "Read-index requests that failed";
    READ_ROUNDS_DURATION = "placement_read_rounds_duration" Counter SECONDS []
        "Time spent on successful read-index requests";
    READS_LINEARIZED = "placement_reads_linearized" Counter None []
        "Reads served by read-index requests";
    HTTP_CALLERS_REFUSED = "placement_http_callers_refused" Counter None ["limit"]
        "Requests answered 429, by the limit of [callers] or [[partitions]] that they exceed";
    SEARCHES = "placement_searches" Counter None ["result"]
        "Searches for allocation candidates: found, empty, or ended because they exceeded a \
        limit of time or work";
    SEARCHES_EMPTY = "placement_searches_empty" Counter None ["reason"]
        "Searches for allocation candidates that found none, by the first cause; unexplained \
        if there was no time to find the cause";
    SEARCHES_WAITING = "placement_searches_waiting" Gauge None []
        "Searches for allocation candidates that are queued";
    CLAIMS = "placement_claims" Counter None ["outcome"]
        "Claims of /placementd/v1/claims: claimed, repeated, or refused, by the cause";
    CLAIM_CHOICE = "placement_claim_choice" Histogram None []
        "Index of the choice that a claim took, from 0; a higher one means that other clients took \
        the room of the choices before it";
    CLAIMS_OVER_CEILING = "placement_claims_over_ceiling" Counter None ["resource_class"]
        "Claims refused by a ceiling, by its resource class; consumers for ceilings on their \
        number, other for all but the first 64 classes";
    LIMITS_EXCEEDED = "placement_limits_exceeded" Counter None ["resource", "outcome"]
        "Exceeded limits of projects, by the resource class and by whether the write was reported \
        or refused; consumers for limits on their number, other for all but the first 64 classes";
    EVENT_STREAMS = "placement_event_streams" Gauge None []
        "Open streams of changes, such as those of watch and events --sql; a node has at most 512";
    KEYSTONE_REQUESTS = "placement_keystone_requests" Counter None ["result"]
        "Token validations by Keystone: valid, unknown (rejected), or failed without an answer";
    KEYSTONE_WAITING = "placement_keystone_waiting" Gauge None []
        "Tokens that wait for their validation by Keystone; 0 with other strategies of [auth]";
    POLICY_REFUSED = "placement_policy_refused" Gauge None []
        "1 while changed policy files cannot be used and the previous rules are in force";
    POLICY_MISTAKES = "placement_policy_mistakes" Gauge None []
        "Mistakes in the policy files in force; the log names them";
    LOG_LINES_DROPPED = "placement_log_lines_dropped" Counter None []
        "Log lines dropped because standard error was not read in time";
    TRACE_SPANS_DROPPED = "placement_trace_spans_dropped" Counter None []
        "Spans dropped because the collector of traces was unreachable, too slow or rejected them";
    AUDIT_RECORDS = "placement_audit_records" Counter None []
        "Audit records written";
    AUDIT_WRITTEN = "placement_audit_written" Counter BYTES []
        "Size of the audit records written";
    AUDIT_RECORDS_LOST = "placement_audit_records_lost" Counter None []
        "Audit records lost because their queue was full or the node stopped";
    AUDIT_FAILED = "placement_audit_failed" Gauge None []
        "1 while audit records cannot be written";
    AUDIT_SYNC_DURATION = "placement_audit_sync_duration" Histogram SECONDS []
        "Time to sync audit records, for which writes wait";
    CERTIFICATE_END = "placement_certificate_end_timestamp" Gauge SECONDS ["listener"]
        "When a listener's certificate (api, peer, admin) or its authority expires, since 1970";
    DISK_USED = "placement_disk_used" Gauge BYTES []
        "Files in the data directory; absent if unknown";
    DISK_FREE = "placement_disk_free" Gauge BYTES []
        "Free space on the disk of the data directory; absent if unknown";
    SITE = "placement_site" Gauge None ["region", "zone", "name"]
        "Always 1; the labels have this node's site and name";
    PEER_ROUND_TRIP = "placement_peer_round_trip" Gauge SECONDS ["peer"]
        "Round trip to another node, a smoothed mean; each node measures voters, the leader all \
        nodes";
    PEER_UP = "placement_peer_up" Gauge None ["peer"]
        "1 if the last attempt to reach another node succeeded, 0 if not; each node tries \
        voters, the leader all nodes";
    ROUND_TRIP_TOO_LONG = "placement_round_trip_too_long" Gauge None []
        "1 while the round trip to a voter is too long for the election timeouts; set [raft] \
        round_trip_ms";
    CLOCK_AHEAD = "placement_clock_ahead" Gauge SECONDS []
        "How far this node's clock is ahead of the clocks of a majority of the voters; if the \
        difference exceeds 5 s, a leader uses the time of that majority. If no majority agrees: \
        ahead of the clock that differs most";
    PEER_SENT = "placement_peer_sent" Counter BYTES ["peer"]
        "Bytes sent to another node";
    PEER_SENT_PLAIN = "placement_peer_sent_plain" Counter BYTES ["peer"]
        "Bytes sent to another node, before compression";
    PEER_FRAMES_DAMAGED = "placement_peer_frames_damaged" Counter None []
        "Damaged frames received from nodes; each ended its connection";
    MEMBER = "placement_member" Gauge None []
        "1 if this node belongs to a cluster";
    REMOVED = "placement_removed" Gauge None []
        "1 if this node was removed from its cluster";
    FEATURE_LEVEL = "placement_feature_level" Gauge None []
        "The feature level of the cluster, as applied by this node";
    FEATURE_LEVEL_AGREED = "placement_feature_level_agreed" Gauge None []
        "The highest feature level that this node supports";
    RAFT_TERM = "placement_raft_term" Gauge None []
        "The current term of Raft";
    RAFT_LEADS = "placement_raft_leads" Gauge None []
        "1 if this node leads";
    RAFT_LEADER = "placement_raft_leader" Gauge None ["peer"]
        "1 for the member that leads, as far as this node knows, 0 for every other";
    REPLACEMENTS = "placement_replacements" Counter None []
        "Members that this node, as the leader, has replaced: by a join token or the autopilot";
    GIVEN_UP_STREAMS = "placement_raft_given_up_streams" Counter None []
        "Snapshots that this node, as the leader, sent instead of log entries, to members that \
        lacked more than 2 x [raft] snapshot_after entries";
    RAFT_LEADER_CHANGES = "placement_raft_leader_changes" Counter None []
        "Changes and losses of the leader that this node has seen since its start";
    RAFT_LAST_LOG_INDEX = "placement_raft_last_log_index" Gauge None []
        "The last entry of the log of this node";
    RAFT_COMMITTED_INDEX = "placement_raft_committed_index" Gauge None []
        "The last entry known to be committed";
    RAFT_APPLIED_INDEX = "placement_raft_applied_index" Gauge None []
        "The last entry applied";
    RAFT_SNAPSHOT_INDEX = "placement_raft_snapshot_index" Gauge None []
        "The last entry that may be removed from the log";
    RAFT_SNAPSHOTS_FAILED = "placement_raft_snapshots_failed" Counter None []
        "Snapshots that could not be written or flushed; retried";
    RAFT_SNAPSHOTS_DAMAGED = "placement_raft_snapshots_damaged" Counter None []
        "Snapshots found damaged when they were sent, and written again";
    RAFT_PURGED_INDEX = "placement_raft_purged_index" Gauge None []
        "The last entry removed from the log";
    LEDGER_FLOOR_INDEX = "placement_ledger_floor_index" Gauge None []
        "The ledger retains the changes of all entries after this one, for events, history and \
        reads of an earlier moment";
    LEDGER = "placement_ledger" Gauge BYTES []
        "Size of the ledger of changes";
    RAFT_VOTERS = "placement_raft_voters" Gauge None []
        "Members with a vote";
    RAFT_CAN_LOSE = "placement_raft_can_lose" Gauge None []
        "How many of the reachable voters may fail before the quorum is lost; on the leader only";
    RAFT_FOLLOWER_LAG = "placement_raft_follower_lag" Gauge None ["node"]
        "Log entries that a node lacks; on the leader only";
    RAFT_FOLLOWER_ACKNOWLEDGEMENT = "placement_raft_follower_acknowledgement" Gauge SECONDS ["node"]
        "Time from sending log entries to a node until it acknowledges them, the median over the \
        seconds of the last minute; on the leader only";
    RAFT_FOLLOWER_SLOW = "placement_raft_follower_slow" Gauge None ["node"]
        "1 if a node acknowledges log entries much later than the fastest follower and the round \
        trip explain, 0 if not; on the leader only";
    BACKUP_LAST = "placement_backup_last_timestamp" Gauge SECONDS []
        "Time of the last good backup of [backup], since 1970; 0 without one";
    BACKUP_LOG_INDEX = "placement_backup_log_index" Gauge None []
        "The last entry in the log archived with the backups";
    BACKUP_OVERDUE = "placement_backup_overdue" Gauge None []
        "1 if [backup] has made no good backup in the last 2 x every_s seconds";
    BACKUP_LOG_GAPS = "placement_backup_log_gaps" Counter None []
        "Gaps in the log archived with the backups, since the start";
    BACKUP_FAILURES = "placement_backup_failures" Counter None []
        "Failures to make backups of [backup] or to archive entries; retried";
    BACKUP_COPIED = "placement_backup_copied_timestamp" Gauge SECONDS []
        "Last time at which the bucket of [backup_s3] had a copy of every backup and of the log, \
        since 1970; 0 if never since the start";
    BACKUP_COPY_FAILURES = "placement_backup_copy_failures" Counter None []
        "Failed copies to the bucket of [backup_s3]; retried";
    STORAGE_FAILED = "placement_storage_failed" Gauge None []
        "1 if the disk has failed or holds data that this version cannot read, or a vital task \
        has ended";
    DISK_WAIT = "placement_disk_wait" Gauge SECONDS []
        "How long the current disk operation has taken so far; 0 without one";
    STALENESS = "placement_staleness" Gauge SECONDS []
        "Upper bound of the age of this node's state; absent if unknown";
    ROCKSDB_WAL = "placement_rocksdb_wal" Gauge BYTES ["db"]
        "Write-ahead log files, including files kept for reuse";
    ROCKSDB_MEMTABLE = "placement_rocksdb_memtable" Gauge BYTES ["db"]
        "Write buffers in memory";
    ROCKSDB_SST = "placement_rocksdb_sst" Gauge BYTES ["db"]
        "Sorted files";
    ROCKSDB_PENDING_COMPACTION = "placement_rocksdb_pending_compaction" Gauge BYTES ["db"]
        "Bytes that compactions must rewrite";
    ROCKSDB_BACKGROUND_ERRORS = "placement_rocksdb_background_errors" Counter None ["db"]
        "Errors of flushes and compactions since start";
    ROCKSDB_BLOCK_CACHE = "placement_rocksdb_block_cache" Gauge BYTES []
        "Block cache in use; both databases share it";
    LOG_SYNC_DURATION = "placement_log_sync_duration" Histogram SECONDS []
        "Time to sync the log";
    LOG_ENTRIES_SYNCED = "placement_log_entries_synced" Counter None []
        "Log entries synced";
    APPLY_DURATION = "placement_apply_duration" Histogram SECONDS []
        "Time to apply a batch of log entries";
    LOG_ENTRIES_APPLIED = "placement_log_entries_applied" Counter None []
        "Log entries applied";
    PARTITION_REQUESTS = "placement_partition_requests" Counter None ["partition"]
        "Requests answered by the API of a partition, not counting operators' requests";
    PARTITION_TREES = "placement_partition_trees" Gauge None ["partition"]
        "Provider trees";
    PARTITION_PROVIDERS = "placement_partition_providers" Gauge None ["partition"]
        "Resource providers";
    PARTITION_CONSUMERS = "placement_partition_consumers" Gauge None ["partition"]
        "Consumers";
    PARTITION_RESOURCE_CLASSES = "placement_partition_resource_classes" Gauge None ["partition"]
        "Resource classes";
    PARTITION_TRAITS = "placement_partition_traits" Gauge None ["partition"]
        "Traits";
    INVENTORY_UNITS = "placement_inventory_units" Gauge None ["partition", "resource_class"]
        "Total units of all inventories; each partition shows the 64 oldest classes with \
        inventories, and the sum of the others as other";
    INVENTORY_RESERVED = "placement_inventory_reserved" Gauge None ["partition", "resource_class"]
        "Reserved units";
    INVENTORY_CAPACITY = "placement_inventory_capacity" Gauge None ["partition", "resource_class"]
        "Units that may be allocated, overcommit included";
    INVENTORY_USED = "placement_inventory_used" Gauge None ["partition", "resource_class"]
        "Allocated units";
    INVENTORY_FREE = "placement_inventory_free" Gauge None ["partition", "resource_class"]
        "Units that may still be allocated; a provider over its capacity counts as 0";
    INVENTORY_LARGEST_FREE = "placement_inventory_largest_free" Gauge None ["partition", "resource_class"]
        "The most units that one provider can give to one request";
    CONSUMERS = "placement_consumers" Gauge None ["partition", "type"]
        "Consumers with allocations, by consumer type; the 64 types with most consumers, and the \
        sum of the others as other";
    HOLDS = "placement_holds" Gauge None ["partition"]
        "Holds: allocations kept for other consumers or for a limited time";
    HOLDS_OVERDUE = "placement_holds_overdue" Gauge None ["partition"]
        "Holds whose due time has passed; they do not end by themselves";
    FITS = "placement_fits" Gauge None ["partition", "name"]
        "How often a named query of [[fits]] fits, at most 10000; on the leader only, up to 5 minutes \
        old, absent if counting takes too long";
    REFUGE_TREES = "placement_refuge_trees" Gauge None ["partition", "outcome"]
        "Provider trees, such as hosts, by what their loss would mean: empties (all consumers have \
        room elsewhere), stuck (some have none), or undecided (not looked at within 10 s); trees of \
        sharing providers do not count; on the leader only, up to 5 minutes old";
    PROCESS_RESIDENT_MEMORY = "process_resident_memory" Gauge BYTES []
        "Resident memory of the process";
    PROCESS_OPEN_FDS = "process_open_fds" Gauge None []
        "Open file descriptors of the process";
    PROCESS_MAX_FDS = "process_max_fds" Gauge None []
        "Limit of open file descriptors; absent without a limit";
    PROCESS_CPU = "process_cpu" Counter SECONDS []
        "Processor time of the process";
    PROCESS_START = "process_start_time" Gauge SECONDS []
        "When the process started, since 1970";
}
