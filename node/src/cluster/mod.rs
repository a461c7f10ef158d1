//! This node as a member of its cluster, from the ground up: what it knows (`replica`), the ways of
//! writes and reads (`write`, `read`), a running member (`running`, found in its `slot`), who leads
//! (`leadership`), who belongs to it (`members`), what keeps it fit (`upkeep`), how it starts
//! (`start`), and what the REST API and the other nodes reach of it (`backend`, `peer_service`).
//!
//! # Background tasks
//!
//! All are started by [`Node::start`](crate::Node::start) or, once the node is a member, by
//! `start/member.rs`, and end with the node. If a *vital* one ends, the node says so in `/readyz`
//! and leaves the cluster until it is restarted; what another one does is then left undone until a
//! restart. All run on the runtime of Raft, but those for HTTP. A panic ends the process.
//!
//! | file | task | runs | does | vital |
//! |---|---|---|---|---|
//! | `rpc/server.rs` | `serve` | always | answers other nodes | yes |
//! | `serve.rs` | `HttpServer::serve` of each listener (HTTP's runtime) | always | answers clients, operators and monitors | yes |
//! | `tls/certificates.rs` | `watch` | every 5 s | reads certificates again that have changed | |
//! | `node.rs` | `look_at_policy` of each policy | every second | reads policy files again that have changed | |
//! | `node.rs` | `probe` | every second | asks the leader how far this node should be, if no read did | |
//! | `start/bootstrap.rs` | `form` | every 200 ms until formed | forms the cluster of the initial members | |
//! | `start/joining.rs` | `join` | every 1 to 10 s until joined | asks to be let in with a token | |
//! | `start/self_description.rs` | `report` | every 1 to 64 s | has the cluster know this node's name, site and addresses | |
//! | `upkeep/snapshot_intake.rs` | `clean` | every minute | drops snapshots that came in part | |
//! | `leadership/preference.rs` | `follow`, with `[cluster] leader_preference` | every second | as the leader, hands over to a better site | |
//! | `write/proposals.rs` | `Proposer::run` | on each batch of writes | as the leader, stamps and proposes | yes |
//! | `read/index.rs` | `confirm_reads` | on each round of reads | asks the leader how far a read must be | yes |
//! | `write/own_past.rs` | `watch` | every second until known | finds out whether the data are an older copy | |
//! | `leadership/watch.rs` | `watch` | when the leader changes | logs and counts it | yes |
//! | `leadership/watch.rs` | `follow_members` | when the membership changes | has connections follow addresses | yes |
//! | `leadership/watch.rs` | `send_to_those_found` | when a node is found again | has Raft send entries to it at once | |
//! | `leadership/watch.rs` | `leave_without` | when a vital task has ended | quarantines this node | |
//! | `leadership/watch.rs` | `leave_on_failure` | when the store has failed | stops Raft | |
//! | `leadership/round_trips.rs` | `measure` | every 2 s | pings the voters: round trips and clocks | |
//! | `members/replacement.rs` | `run` | every second | as the leader, carries a replacement through | |
//! | `members/autopilot.rs` | `watch`, with `[cluster] autopilot_after_s` | every second | as the leader, begins a replacement for a lost voter | |
//! | `members/removal.rs` | `watch` | every 2 s | without a leader, asks the others whether this node was removed | |
//! | `upkeep/upgrade.rs` | `write_standards` | until they are there | has the standard names of this binary written | |
//! | `upkeep/upgrade.rs` | `raise_level` | every second until the newest | as the leader, raises the feature level | |
//! | `upkeep/divergence.rs` | `watch` | every 5 s | compares digests with the other voters | |
//! | `upkeep/room.rs` | `watch` | every 5 s | as the leader, asks which disks are nearly full | yes |
//! | `upkeep/disk_watch.rs` | `watch` and a thread, with `[disk] hung_after_ms` | every 250 ms | hands over, and ends the process, when the disk hangs | yes |
//! | `upkeep/snapshots.rs` | `watch` | at this node's turns | makes rows durable, cuts the log | |
//! | `upkeep/snapshots.rs` | `end_streams_of_those_behind` | every second | as the leader, has members that lag too far be sent a snapshot | |
//! | `upkeep/backups.rs` | `make`, with `[backup] directory` | every `[backup] every_s` | makes a backup | |
//! | `upkeep/backups.rs` | `keep_log`, with `[backup] directory` | every second | keeps the log since the last backup | |
//! | `upkeep/mirror.rs` | `run`, with `[backup_s3]` (HTTP's runtime) | every 10 s | copies backups and log to the bucket | |

pub(crate) mod backend;
pub(crate) mod backlog;
mod error;
#[cfg(test)]
mod fixtures;
mod freshness;
pub(crate) mod internal_actions;
mod kept_backups;
pub(crate) mod leadership;
pub(crate) mod members;
pub(crate) mod peer_service;
mod read;
pub(crate) mod replica;
mod running;
mod settings;
pub(crate) mod slot;
pub(crate) mod standards;
pub(crate) mod start;
mod upkeep;
pub(crate) mod write;
mod write_ids;

pub use error::{Refused, StartError};
pub(crate) use running::ReadMetrics;
pub(crate) use running::Running;
pub(crate) use settings::Settings;
pub use settings::{
    BackupSection, ClusterSection, DiskSection, InitialMember, NodeSection, RaftSection,
};
pub use start::Addresses;
pub use start::joining::settle_number;
