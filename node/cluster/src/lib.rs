//! This node as a member of its cluster. From the lowest to the highest layer: the state of the
//! node (`replica`), the paths of writes and reads (`write`, `read`), a running member (`running`,
//! held in its `slot`), leadership (`leadership`), membership (`members`), maintenance (`upkeep`),
//! startup (`start`), and the interfaces to the REST API and to other nodes (`backend`,
//! `peer_service`).
//!
//! # Background tasks
//!
//! `Node::start` starts some of them, and `start/member.rs` the others when the node is a member.
//! They end with the node. If a *vital* task ends, the node reports it in `/readyz` and is
//! quarantined until it is restarted. If any other task ends, its work is not done until the node
//! is restarted. All tasks run on Raft's runtime, except those marked HTTP. A panic ends the
//! process.
//!
//! Always running:
//!
//! - `serve` in `placement_peer::transport::reception`, vital: answers other nodes.
//! - `HttpServer::serve` in `serve.rs`, one per listener, HTTP, vital: answers clients, operators
//!   and monitoring.
//!
//! At an interval:
//!
//! - `watch` in `placement_peer::tls`, every 5 s: reloads changed certificates.
//! - `look_at_policy` in `node.rs`, one per policy, every second: reloads changed policy files.
//! - `probe` in `node.rs`, every second: asks the leader for its commit index, unless a read did.
//! - `form` in `start/bootstrap.rs`, every 200 ms until formed: forms the cluster of the initial
//!   members.
//! - `join` in `start/joining.rs`, every 1 to 10 s until joined: asks for admission with a token.
//! - `report` in `start/self_description.rs`, every 1 to 64 s: reports this node's name, site and
//!   addresses to the cluster.
//! - `clean` in `upkeep/snapshot_intake.rs`, every minute: drops incomplete incoming snapshots.
//! - `follow` in `leadership/preference.rs`, with `[cluster] leader_preference`, every second: as
//!   the leader, hands over to a preferred site.
//! - `lead_only_undrained` in `leadership/preference.rs`, while this node is drained, every second:
//!   as the leader, hands over to a voter that is not drained.
//! - `watch` in `write/own_past.rs`, every second until known: determines whether the data
//!   directory is an older copy, and records this start in the cluster.
//! - `watch` in `upkeep/leases.rs`, every second: as the leader, ends holds whose leases are over.
//! - `measure` in `leadership/round_trips.rs`, every 2 s: pings the voters to measure round trips
//!   and clocks.
//! - `run` in `members/replacement.rs`, every second: as the leader, carries out replacements of
//!   members.
//! - `watch` in `members/autopilot.rs`, with `[cluster] autopilot_after_s`, every second: as the
//!   leader, begins to replace a lost voter.
//! - `watch` in `members/removal.rs`, every 2 s: without a leader, asks the others whether this
//!   node was removed.
//! - `write_standards` in `upkeep/upgrade.rs`, until done: writes the standard names of this
//!   binary.
//! - `raise_level` in `upkeep/upgrade.rs`, every second until the newest: as the leader, raises the
//!   feature level.
//! - `watch` in `upkeep/divergence.rs`, every 5 s: compares digests with the other voters.
//! - `watch` in `upkeep/room.rs`, every 5 s, vital: checks the free disk space; as the leader, also
//!   that of the other voters.
//! - `watch` in `upkeep/disk_watch.rs` and a thread, with `[disk] hung_after_ms`, every 250 ms,
//!   vital: when the disk hangs, hands leadership over, and finally ends the process.
//! - `end_streams_of_those_behind` in `upkeep/snapshots.rs`, every second: as the leader, sends
//!   snapshots to members that lag too far behind.
//! - `make` in `upkeep/backups.rs`, with `[backup] directory`, every `[backup] every_s`: makes a
//!   backup.
//! - `keep_log` in `upkeep/backups.rs`, with `[backup] directory`, every second: archives the
//!   applied log entries.
//! - `run` in `upkeep/mirror.rs`, with `[backup_s3]`, HTTP, every 10 s: copies backups and log to
//!   the bucket.
//!
//! On events:
//!
//! - `Proposer::run` in `write/proposals.rs`, on each batch of writes, vital: as the leader, stamps
//!   and proposes.
//! - `confirm_reads` in `read/index.rs`, for each group of waiting reads, vital: obtains the read
//!   index from the leader.
//! - `watch` in `leadership/watch.rs`, when the leader changes, vital: logs and counts the change.
//! - `follow_members` in `leadership/watch.rs`, when the membership changes, vital: updates the
//!   addresses of connections.
//! - `send_to_those_found` in `leadership/watch.rs`, when a node is reachable again: makes Raft
//!   send entries to it at once.
//! - `quarantine_on_task_end` in `leadership/watch.rs`, when a vital task has ended: quarantines
//!   this node.
//! - `quarantine_on_failure` in `leadership/watch.rs`, when the store has failed: stops Raft.
//! - `watch` in `upkeep/snapshots.rs`, at log indexes specific to this node: makes rows durable and
//!   truncates the log.

#![allow(
    missing_docs,
    reason = "only this workspace uses the crate; a clear name needs no comment"
)]

pub mod backend;
pub mod backlog;
pub mod bucket;
pub mod env;
mod error;
#[cfg(test)]
mod fixtures;
mod freshness;
pub mod internal_actions;
mod kept_backups;
pub mod leadership;
pub mod members;
pub mod peer_service;
mod read;
pub mod replica;
mod running;
mod settings;
pub mod slot;
pub mod standards;
pub mod start;
pub mod topology;
mod upkeep;
mod waits;
pub mod write;
mod write_ids;

pub use error::{Refused, StartError};
pub use running::ReadMetrics;
pub use running::Running;
pub use settings::Settings;
pub use settings::{
    BackupSection, ClusterSection, DiskSection, InitialMember, NodeSection, RaftSection,
};
pub use start::Addresses;
pub use start::joining::settle_number;
pub use waits::Waits;
