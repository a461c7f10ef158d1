//! The catalog of log messages: name and level of each line that an operator may meet.
//!
//! The name is the field `event` of the line. It stays the same when the sentence changes, so that
//! operators and their tools can search for it. [`log!`] writes a line; `docs/log-messages.md` is
//! generated from this file. Lines at `debug`, and the lines of the access log and of searches,
//! which have targets of their own, have no name.

/// The macro [`log!`] uses this crate.
pub use tracing;
use tracing::Level;

/// The kind of a log line.
#[derive(Debug, Clone, Copy)]
pub struct LogMessage {
    /// The name of the event, which is the field `event` of the line.
    pub event: &'static str,
    /// Level of the line.
    pub level: Level,
}

/// Writes a line to the log: a name of the catalog, then fields and a sentence, as in the macros of
/// `tracing`. `log!(PEER_UNREACHABLE, peer, %error, "a peer cannot be reached")`
#[macro_export]
macro_rules! log {
    ($name:ident, $($rest:tt)+) => {
        $crate::log_messages::tracing::event!(
            $crate::log_messages::$name.level,
            event = $crate::log_messages::$name.event,
            $($rest)+
        )
    };
}

pub use log;

macro_rules! catalog {
    ($($(#[doc = $doc:literal])* $name:ident = $level:ident $event:literal;)*) => {
        $(
            $(#[doc = $doc])*
            pub const $name: LogMessage = LogMessage {
                event: $event,
                level: Level::$level,
            };
        )*

        /// Name, message and doc of each constant. The first paragraph of the doc is the meaning,
        /// the second says what to do.
        #[cfg(test)]
        const ALL: &[(&str, LogMessage, &str)] =
            &[$((stringify!($name), $name, concat!($($doc, "\n"),*))),*];
    };
}

catalog! {
    // Start, stop and configuration.

    /// The node accepts connections at the addresses in the line, with or without TLS as the line
    /// says.
    LISTENING = INFO "listening";
    /// The process was asked to stop.
    STOP_REQUESTED = INFO "stop-requested";
    /// The stopping node still answers, until load balancers have noticed that it is not ready
    /// (`[api] drain_notice_ms`).
    NO_LONGER_READY = INFO "no-longer-ready";
    /// The node has stopped.
    STOPPED = INFO "stopped";
    /// The node stopped before it had answered all requests.
    ///
    /// If this happens at each stop, look for slow requests in the access log.
    REQUESTS_NOT_ANSWERED = WARN "requests-not-answered";
    /// The stopped node has not closed its data directory in time.
    ///
    /// Start the node again only after its process has ended.
    DATA_DIRECTORY_STILL_OPEN = WARN "data-directory-still-open";
    /// The configuration contains a mistake that does not prevent the start; the line describes it.
    ///
    /// Correct the setting; `placementd check-config` shows the same warning.
    SETTINGS_WARNING = WARN "settings-warning";
    /// After SIGHUP, `settings` differ from those in force, and cannot change while the node runs.
    ///
    /// Restart the node.
    SETTINGS_NEED_RESTART = WARN "settings-need-restart";
    /// After SIGHUP, the configuration is invalid; all previous settings stay in force.
    ///
    /// Correct what `placementd check-config` reports, and send SIGHUP again.
    CONFIGURATION_INVALID = ERROR "configuration-invalid";
    /// After SIGHUP, `[log] level` is in force.
    LOG_LEVEL_RELOADED = INFO "log-level-reloaded";
    /// After SIGHUP, `[log] level` is invalid; the previous level stays in force.
    ///
    /// Correct `[log] level`, and send SIGHUP again.
    LOG_LEVEL_NOT_RELOADED = ERROR "log-level-not-reloaded";
    /// Standard error was not read in time, and log lines were dropped.
    ///
    /// Check what reads the log, such as journald, and its rate limit.
    LOG_LINES_DROPPED = WARN "log-lines-dropped";
    /// The limit of open files is lower than the node needs for `[api] max_connections`.
    ///
    /// Raise the limit: [Out of file descriptors](runbook.md#out-of-file-descriptors).
    OPEN_FILES_LIMIT_LOW = WARN "open-files-limit-low";
    /// The node could not disable core dumps; a core dump would contain secrets.
    ///
    /// Disable core dumps for the service (`LimitCORE=0`).
    CORE_DUMPS_NOT_DISABLED = WARN "core-dumps-not-disabled";
    /// An operator drains this node.
    DRAIN_STARTED = INFO "drain-started";
    /// An operator has ended the drain of this node.
    DRAIN_ENDED = INFO "drain-ended";

    // Bugs.

    /// The node panicked outside of a request; the process exits.
    ///
    /// Report the line; the supervisor restarts the process:
    /// [A node restarts again and again](runbook.md#a-node-restarts-again-and-again).
    PANICKED = ERROR "panicked";
    /// The node panicked while it applied an entry of the log; the process exits.
    ///
    /// See [An entry ends every node](runbook.md#an-entry-ends-every-node).
    ENTRY_NOT_APPLIED = ERROR "entry-not-applied";
    /// The node panicked in a request, which gets 500; the process continues.
    ///
    /// Report the line: [A request fails with 500](runbook.md#a-request-fails-with-500).
    REQUEST_PANICKED = ERROR "request-panicked";
    /// A request gets 500.
    ///
    /// Report the line: [A request fails with 500](runbook.md#a-request-fails-with-500).
    REQUEST_FAILED = ERROR "request-failed";
    /// A new write was taken for a repetition of an earlier one, and gets 500.
    ///
    /// Report the line.
    WRITE_TAKEN_FOR_RETRY = ERROR "write-taken-for-retry";
    /// A task without which the node cannot work has ended; the node is quarantined.
    ///
    /// Restart the node, and report the lines before this one.
    VITAL_TASK_ENDED = ERROR "vital-task-ended";
    /// A thread that writes to the disk has panicked.
    ///
    /// Report the lines before this one.
    DISK_THREAD_PANICKED = ERROR "disk-thread-panicked";

    // The REST API and its callers.

    /// `[auth] strategy` is `noauth2`: every client may do everything.
    ///
    /// Use this strategy only for tests.
    AUTHENTICATION_OFF = WARN "authentication-off";
    /// The system does not let the node accept a connection.
    ///
    /// See [Out of file descriptors](runbook.md#out-of-file-descriptors).
    CONNECTION_NOT_ACCEPTED = WARN "connection-not-accepted";
    /// Keystone did not answer a request to validate a token.
    ///
    /// See [Keystone does not answer](runbook.md#keystone-does-not-answer).
    KEYSTONE_UNAVAILABLE = WARN "keystone-unavailable";
    /// Another service than Keystone answers at `url`.
    ///
    /// Correct `[keystone] auth_url`, or the identity endpoint in Keystone's catalog.
    KEYSTONE_URL_WRONG = WARN "keystone-url-wrong";
    /// Keystone did not revoke the token of a user who has logged out of the pages; it stays valid
    /// until it expires.
    ///
    /// See [Keystone does not answer](runbook.md#keystone-does-not-answer).
    LOGOUT_INCOMPLETE = WARN "logout-incomplete";
    /// The node has read the policy files, and their rules are in force.
    POLICY_READ = INFO "policy-read";
    /// Changed policy files cannot be used; the previous rules stay in force.
    ///
    /// Correct what `placementd policy check` reports.
    POLICY_UNUSABLE = ERROR "policy-unusable";
    /// A rule in a policy file is faulty; the line describes the mistake.
    ///
    /// Correct what `placementd policy check` reports.
    POLICY_RULE_FAULTY = ERROR "policy-rule-faulty";
    /// A write exceeds a limit of `project`; it is carried out or refused, as `outcome` says.
    ///
    /// No action is needed if the [limit](api.md#limits) is right; otherwise change it in Keystone,
    /// and run `placementctl limits sync`.
    PROJECT_OVER_LIMIT = WARN "project-over-limit";
    /// The node cannot read the change log from its disk; the request fails.
    ///
    /// Check the disk of the node.
    CHANGES_UNREADABLE = ERROR "changes-unreadable";
    /// The node cannot tell whether a refused claim repeats a committed one, and refuses it.
    ///
    /// Check the disk of the node if `reason` is an error of the disk.
    REPEATED_CLAIM_UNCLEAR = WARN "repeated-claim-unclear";
    /// The answer to a write was lost; the node asks again under the same write id.
    WRITE_OUTCOME_UNKNOWN = INFO "write-outcome-unknown";

    // Audit log and traces.

    /// Audit records cannot be written; the node retries every second.
    ///
    /// See [audit log](operate/logs.md#audit-log).
    AUDIT_FAILED = ERROR "audit-failed";
    /// Audit records are written again; `lost` of them were dropped since the start.
    ///
    /// Note the gap if `lost` is above 0.
    AUDIT_RECOVERED = WARN "audit-recovered";
    /// After SIGHUP, the audit file is open again under its name.
    AUDIT_REOPENED = INFO "audit-reopened";
    /// After SIGHUP, the audit file cannot be opened; records go to the previous file.
    ///
    /// Correct the cause in `error`, and send SIGHUP again.
    AUDIT_NOT_REOPENED = ERROR "audit-not-reopened";
    /// The last audit records were not written before the node stopped.
    ///
    /// Check the disk or the receiver of the records.
    AUDIT_NOT_FLUSHED = WARN "audit-not-flushed";
    /// The collector does not accept spans, and the node drops them.
    ///
    /// Check `[trace] otlp_endpoint` and the collector.
    SPANS_DROPPED = WARN "spans-dropped";
    /// The collector accepts spans again.
    SPANS_ACCEPTED = INFO "spans-accepted";

    // Forming and joining a cluster.

    /// The node waits for another node, or for an operator, to form the cluster.
    WAITING_FOR_CLUSTER = INFO "waiting-for-cluster";
    /// The node tries to form the cluster of `initial_members`; `reason` says what is missing.
    CLUSTER_NOT_FORMED = INFO "cluster-not-formed";
    /// Another node calls this node as a member of its cluster, but this node has no data.
    ///
    /// Mount the data directory and start the node again, or replace the node:
    /// [A node is dead](runbook.md#a-node-is-dead).
    DATA_LOST = ERROR "data-lost";
    /// The node must not form a cluster; `reason` says why.
    ///
    /// See [how a cluster is formed](operate/form.md#form-a-cluster).
    CLUSTER_REFUSED = ERROR "cluster-refused";
    /// This node has formed the cluster.
    CLUSTER_FORMED = INFO "cluster-formed";
    /// The node has created its data directory for a cluster.
    DATA_DIRECTORY_CREATED = INFO "data-directory-created";
    /// The cluster has admitted this node, which now waits for the log.
    JOINING = INFO "joining";
    /// This node has become a member of the cluster that it joins.
    JOINED = INFO "joined";
    /// The cluster has not admitted this node yet; `reason` says why.
    ///
    /// See [how a node is added](operate/members.md#add-a-node).
    NOT_ADMITTED = WARN "not-admitted";
    /// As the leader: a node with a join token was not admitted.
    ///
    /// If no operator adds a node, look for the sender; otherwise see
    /// [how a node is added](operate/members.md#add-a-node).
    JOIN_REFUSED = WARN "join-refused";
    /// An operator has created a join token.
    JOIN_TOKEN_ISSUED = INFO "join-token-issued";
    /// An operator has revoked a join token.
    JOIN_TOKEN_REVOKED = INFO "join-token-revoked";
    /// The node takes part in the cluster.
    REPLICATION_STARTED = INFO "replication-started";
    /// The cluster has recorded the name, site and addresses of this node.
    DESCRIPTION_ACCEPTED = INFO "description-accepted";
    /// The cluster rejects the name, site or addresses of this node.
    ///
    /// Correct the settings that `refused` names.
    DESCRIPTION_REFUSED = WARN "description-refused";

    // Members.

    /// As the leader: the node carries out a change of the membership.
    MEMBERSHIP_CHANGE = INFO "membership-change";
    /// As the leader: the node refuses a change of the membership; `refused` says why.
    ///
    /// No action is needed: the cluster is unchanged, and the operator gets the same reason.
    MEMBERSHIP_CHANGE_REFUSED = WARN "membership-change-refused";
    /// As the leader: a member has a new address.
    MEMBER_MOVED = INFO "member-moved";
    /// As the leader: a replacement waits; `reason` says for what.
    REPLACEMENT_WAITS = INFO "replacement-waits";
    /// As the leader: the new node gets the vote of the node that it replaces.
    VOTE_GIVEN = INFO "vote-given";
    /// As the leader: the replaced node loses its vote.
    VOTE_TAKEN = INFO "vote-taken";
    /// As the leader: a replacement has ended.
    REPLACEMENT_ENDED = INFO "replacement-ended";
    /// As the leader: a step of a replacement failed; the leader retries it.
    ///
    /// If the line is repeated, see [how a node is replaced](operate/members.md#replace-a-node).
    REPLACEMENT_STEP_FAILED = WARN "replacement-step-failed";
    /// As the leader: a voter was unreachable for `[cluster] autopilot_after_s`, and its vote moves
    /// to a learner.
    ///
    /// See [A node is dead](runbook.md#a-node-is-dead).
    VOTER_LOST = WARN "voter-lost";
    /// As the leader: the vote of a lost voter could not be moved yet.
    ///
    /// If the line is repeated, see [The quorum is gone](runbook.md#the-quorum-is-gone).
    VOTE_NOT_MOVED = WARN "vote-not-moved";
    /// This node was removed from its cluster.
    ///
    /// Stop the process.
    REMOVED = ERROR "removed";
    /// The leader has raised the feature level: earlier versions can no longer be started.
    FEATURE_LEVEL_RAISED = INFO "feature-level-raised";
    /// The leader could not raise the feature level yet, and retries.
    ///
    /// If the line is repeated, see [The quorum is gone](runbook.md#the-quorum-is-gone).
    FEATURE_LEVEL_NOT_RAISED = WARN "feature-level-not-raised";
    /// The cluster knows the number of this start, so that it notices an older copy of the data
    /// directory later.
    START_RECORDED = INFO "start-recorded";
    /// A member has written the standard resource classes and traits of its version.
    STANDARDS_WRITTEN = INFO "standards-written";

    // The leader, clocks and round trips.

    /// Another node leads the cluster now.
    LEADER_CHANGED = INFO "leader-changed";
    /// The node knows no leader: an election is in progress, or no majority is reachable.
    ///
    /// If it lasts longer than some seconds, see
    /// [The quorum is gone](runbook.md#the-quorum-is-gone).
    LEADER_UNKNOWN = WARN "leader-unknown";
    /// The leader hands leadership to a site that `[cluster] leader_preference` prefers.
    PREFERRED_SITE_FOUND = INFO "preferred-site-found";
    /// The leader has handed leadership over.
    LEADERSHIP_HANDED_OVER = INFO "leadership-handed-over";
    /// No other voter took over; this node still leads, or stops as the leader.
    ///
    /// `reason` names the voters that lag or do not answer: look at `placementctl status`.
    LEADERSHIP_KEPT = WARN "leadership-kept";
    /// The clock of this node differs from those of the other voters.
    ///
    /// See [A clock is wrong](runbook.md#a-clock-is-wrong).
    CLOCK_WRONG = WARN "clock-wrong";
    /// The clocks agree again.
    CLOCKS_AGREE = INFO "clocks-agree";
    /// The round trip to a voter is too long for the election timeouts.
    ///
    /// Set `[raft] round_trip_ms` on all voters as the line says.
    ROUND_TRIP_LONG = WARN "round-trip-long";

    // Other nodes and their connections.

    /// The node cannot connect to another node; `error` has the reason.
    ///
    /// See [A node is dead](runbook.md#a-node-is-dead).
    PEER_UNREACHABLE = WARN "peer-unreachable";
    /// The other node is reachable again.
    PEER_REACHABLE = INFO "peer-reachable";
    /// A connection to `[peer] listen` is not from a node with a valid certificate.
    ///
    /// If `address` is a node, correct its certificate or its `[peer] tls`; otherwise look for the
    /// sender.
    PEER_NOT_AUTHENTICATED = WARN "peer-not-authenticated";
    /// The node rejects the connection of another node; `reason` says why.
    ///
    /// Correct the configuration or the version of that node:
    /// [A node is dead](runbook.md#a-node-is-dead).
    PEER_REJECTED = WARN "peer-rejected";
    /// The node rejects a call of another node; `reason` says why.
    ///
    /// If `reason` says that this node is quarantined, see
    /// [A node is quarantined](runbook.md#a-node-is-quarantined).
    PEER_CALL_REJECTED = WARN "peer-call-rejected";
    /// Another node cannot read the messages of this node.
    ///
    /// Start the newer version there too; if the versions are equal, test the network and the
    /// memory of both nodes.
    PEER_CANNOT_READ = ERROR "peer-cannot-read";
    /// Log entries of another node arrived damaged; that node sends them again.
    ///
    /// If the line is repeated, test the network and the memory of both nodes.
    ENTRIES_DAMAGED = ERROR "entries-damaged";
    /// The bytes of a connection arrived damaged; unanswered calls are sent again.
    ///
    /// If the line is repeated, test the network between the two nodes.
    FRAME_DAMAGED = WARN "frame-damaged";
    /// A certificate in use expires in less than 30 days.
    ///
    /// See
    /// [A certificate expires or has expired](runbook.md#a-certificate-expires-or-has-expired).
    CERTIFICATE_EXPIRES = WARN "certificate-expires";
    /// A certificate in use has expired, or is not valid yet.
    ///
    /// See
    /// [A certificate expires or has expired](runbook.md#a-certificate-expires-or-has-expired).
    CERTIFICATE_INVALID = WARN "certificate-invalid";
    /// Changed files of a certificate cannot be used; the previous certificate stays in use.
    ///
    /// Correct what `placementd check-config` reports.
    CERTIFICATE_REFUSED = ERROR "certificate-refused";
    /// Changed files of a certificate are in use.
    CERTIFICATE_CHANGED = INFO "certificate-changed";

    // Disk and storage.

    /// This node neither votes nor follows the log until it is restarted or replaced; `failure`
    /// says why.
    ///
    /// See [A node is quarantined](runbook.md#a-node-is-quarantined).
    QUARANTINED = ERROR "quarantined";
    /// The quarantine cannot be recorded in the data directory.
    ///
    /// Do not start the node again with this directory.
    QUARANTINE_NOT_RECORDED = ERROR "quarantine-not-recorded";
    /// Replication did not stop cleanly.
    ///
    /// No action is needed if the node is quarantined or stops; `error` repeats the cause.
    REPLICATION_NOT_STOPPED = WARN "replication-not-stopped";
    /// An operation of the disk has not returned for half a second, or for twice as long as in the
    /// previous line.
    ///
    /// See [A disk hangs](runbook.md#a-disk-hangs).
    DISK_SLOW = WARN "disk-slow";
    /// The disk of the leader hangs; the node hands leadership over.
    ///
    /// See [A disk hangs](runbook.md#a-disk-hangs).
    DISK_HANGS = ERROR "disk-hangs";
    /// A disk operation has not returned for `[disk] hung_after_ms`; the process exits.
    ///
    /// See [A disk hangs](runbook.md#a-disk-hangs).
    DISK_HUNG = ERROR "disk-hung";
    /// A sync of the log was slow.
    ///
    /// If the line is repeated, see [A node is slow](runbook.md#a-node-is-slow).
    SYNC_SLOW = WARN "sync-slow";
    /// Applying entries was slow.
    ///
    /// If the line is repeated, see [A node is slow](runbook.md#a-node-is-slow).
    APPLY_SLOW = WARN "apply-slow";
    /// Applying a single command was slow.
    ///
    /// If the line is repeated, report it with the `command`.
    COMMAND_SLOW = WARN "command-slow";
    /// Entries are not applied because the disk is slow.
    ///
    /// If the line is repeated, see [A node is slow](runbook.md#a-node-is-slow).
    APPLY_WAITS = WARN "apply-waits";
    /// The disk of this node is nearly full. If the node leads, another voter takes over.
    ///
    /// See [A disk is full](runbook.md#a-disk-is-full).
    DISK_NEARLY_FULL = WARN "disk-nearly-full";
    /// As the leader: the disks of a majority are nearly full; writes that need space get 507.
    ///
    /// See [A disk is full](runbook.md#a-disk-is-full).
    DISKS_NEARLY_FULL = ERROR "disks-nearly-full";
    /// As the leader: writes that need space are accepted again.
    DISKS_HAVE_SPACE = INFO "disks-have-space";
    /// The state of another node differs from the state of this node after the same entry.
    ///
    /// See [The states of nodes differ](runbook.md#the-states-of-nodes-differ).
    STATE_DIFFERS = ERROR "state-differs";
    /// The state on disk has the digest of another version; the node computes it again.
    DIGEST_RECOMPUTED = INFO "digest-recomputed";
    /// An operator has accepted a log whose last position is unknown; it may have lost entries.
    ///
    /// No action is needed; see
    /// [A data directory is damaged](runbook.md#a-data-directory-is-damaged).
    LOG_UNCHECKED = WARN "log-unchecked";
    /// The state is ahead of the log after a crash; the log now begins after the state.
    ///
    /// No action is needed: the node gets the missing entries from the leader.
    LOG_BEHIND_STATE = WARN "log-behind-state";
    /// The file `reached` cannot be written.
    ///
    /// Check the disk: until the file is written, the node cannot detect that its log has lost
    /// entries at the end.
    REACHED_NOT_WRITTEN = WARN "reached-not-written";
    /// An operator has skipped this entry of the log.
    ///
    /// No action is needed; each start repeats the line.
    ENTRY_SKIPPED = WARN "entry-skipped";
    /// An operator has recovered this node alone after its cluster had lost the majority.
    ///
    /// No action is needed; each start repeats the line.
    NODE_RECOVERED = WARN "node-recovered";

    // Compaction and snapshots.

    /// The rows of the state are on disk up to the entry `covers`; the log can be cut there.
    ROWS_DURABLE = INFO "rows-durable";
    /// The rows of the state cannot be written, so the log grows; the node retries.
    ///
    /// See [A disk is full](runbook.md#a-disk-is-full).
    ROWS_NOT_DURABLE = ERROR "rows-not-durable";
    /// The rows of the state are written again.
    ROWS_DURABLE_AGAIN = INFO "rows-durable-again";
    /// As the leader: a member cannot keep up with the writes, and gets a snapshot.
    ///
    /// See [A node is slow](runbook.md#a-node-is-slow).
    MEMBER_FALLS_BEHIND = WARN "member-falls-behind";
    /// The node has written a snapshot in order to send it.
    SNAPSHOT_WRITTEN = INFO "snapshot-written";
    /// The node sends a snapshot to another node.
    SNAPSHOT_SENDING = INFO "snapshot-sending";
    /// Another node has not received the snapshot that it needs; the node retries.
    ///
    /// `reason` is often a full disk: [A disk is full](runbook.md#a-disk-is-full).
    SNAPSHOT_DELAYED = WARN "snapshot-delayed";
    /// The other node accepts the snapshot now.
    SNAPSHOT_ACCEPTED = INFO "snapshot-accepted";
    /// The file of the snapshot was damaged; the node sends a new one.
    ///
    /// If the line is repeated, test the disk and the memory of this node.
    SNAPSHOT_SENT_AGAIN = WARN "snapshot-sent-again";
    /// The file of this node's snapshot is damaged; the node writes a new one.
    ///
    /// If the line is repeated, test the disk and the memory of this node.
    SNAPSHOT_DAMAGED = WARN "snapshot-damaged";
    /// The node receives a snapshot.
    SNAPSHOT_RECEIVING = INFO "snapshot-receiving";
    /// An interrupted transfer continues.
    SNAPSHOT_RESUMED = INFO "snapshot-resumed";
    /// No more parts of an incomplete snapshot arrived, and the node has dropped it.
    ///
    /// If the node does not catch up, see
    /// [A slow or lossy link](runbook.md#a-slow-or-lossy-link).
    SNAPSHOT_DROPPED = WARN "snapshot-dropped";
    /// The node rejects a received snapshot; `reason` says why, and the other node sends it again.
    ///
    /// If the line is repeated, test the network and the memory of both nodes.
    SNAPSHOT_REJECTED = ERROR "snapshot-rejected";
    /// The state was replaced by a received snapshot.
    SNAPSHOT_INSTALLED = INFO "snapshot-installed";
    /// The node completes the installation of a snapshot that a crash has interrupted.
    SNAPSHOT_INSTALLED_AFTER_CRASH = INFO "snapshot-installed-after-crash";
    /// A file among the snapshots does not belong to this node, and is removed.
    ///
    /// No action is needed unless an operator has put the file there.
    FOREIGN_FILE_REMOVED = WARN "foreign-file-removed";
    /// A file that is no longer needed cannot be removed.
    ///
    /// Remove the file if it remains after the next start.
    FILE_NOT_REMOVED = WARN "file-not-removed";

    // Backups.

    /// The node has made a backup.
    BACKUP_MADE = INFO "backup-made";
    /// A backup is not made, the log is not archived, or a copy is not written; the node retries.
    ///
    /// See [No backup is made](runbook.md#no-backup-is-made).
    BACKUP_FAILED = ERROR "backup-failed";
    /// Backups, the archived log or the copies, which had failed, work again.
    BACKUP_RECOVERED = INFO "backup-recovered";
    /// The archived log lacks entries: no time in the gap can be restored.
    ///
    /// See [No backup is made](runbook.md#no-backup-is-made).
    ARCHIVED_LOG_GAP = ERROR "archived-log-gap";
    /// Backups are copied over HTTP without TLS.
    ///
    /// Use an `https` address in `[backup_s3]`.
    COPIES_NOT_ENCRYPTED = WARN "copies-not-encrypted";
    /// The copy of a log file in the bucket is longer than the file; the copy is not overwritten.
    ///
    /// See [backups](operate/backups.md).
    COPY_LONGER = WARN "copy-longer";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Meaning of a message, and what to do.
    fn parts(doc: &str) -> (String, Option<String>) {
        let line = |paragraph: &str| {
            let lines: Vec<&str> = paragraph.lines().map(str::trim).collect();
            lines.join(" ").trim().to_owned()
        };
        match doc.split_once("\n\n") {
            Some((meaning, action)) => (line(meaning), Some(line(action))),
            None => (line(doc), None),
        }
    }

    #[test]
    fn messages_have_unique_names_and_problems_say_what_to_do() {
        let mut events = BTreeSet::new();
        for (name, message, doc) in ALL {
            let event = message.event;
            assert_eq!(event, name.to_ascii_lowercase().replace('_', "-"));
            assert!(events.insert(event), "{event} occurs twice");
            let (meaning, action) = parts(doc);
            assert!(meaning.ends_with('.'), "{event}: {meaning}");
            assert_eq!(action.is_some(), message.level < Level::INFO, "{event}");
        }
    }

    fn table(level: Level) -> String {
        let (columns, rule) = match level {
            Level::INFO => ("| event | meaning |", "|---|---|"),
            _ => ("| event | meaning | what to do |", "|---|---|---|"),
        };
        let mut table = format!("{columns}\n{rule}\n");
        let mut messages: Vec<_> = ALL
            .iter()
            .filter(|(_, one, _)| one.level == level)
            .collect();
        messages.sort_by_key(|(_, message, _)| message.event);
        for (_, message, doc) in messages {
            let (meaning, action) = parts(doc);
            let cells = [Some(meaning), action].into_iter().flatten();
            let cells: Vec<String> = cells
                .map(|cell| cell.trim_end_matches('.').to_owned())
                .collect();
            table += &format!("| `{}` | {} |\n", message.event, cells.join(" | "));
        }
        table
    }

    fn page() -> String {
        format!(
            "# Log messages\n\n\
             Each line of the log that an operator may meet has a name, the field `event`: \
             `event=\"peer-unreachable\"`, and in JSON a member of that name.\n\
             The name stays the same when a later version changes the sentence, so search for the name.\n\
             Lines of the [access log](operate/logs.md#logs) and of searches (target `placement::search`), and lines at \
             `debug`, have no name.\n\n\
             ## Errors\n\nLevel `ERROR`: the node cannot do something that it should do.\n\n{}\n\
             ## Warnings\n\nLevel `WARN`: an operator may have to act, immediately or if the line is repeated.\n\n{}\n\
             ## Changes of state\n\nLevel `INFO`: no action is needed.\n\n{}",
            table(Level::ERROR),
            table(Level::WARN),
            table(Level::INFO),
        )
    }

    #[test]
    fn page_is_up_to_date() {
        placement_docs::assert_kept("log-messages.md", &page());
    }
}
