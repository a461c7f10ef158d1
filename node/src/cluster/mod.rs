//! This node as a member of its cluster. From the ground up: what it knows (`replica`), what it owns
//! (`write_path`, `read_index`, `standards`, `membership`), how it starts (`start`,
//! `bootstrap`), and what the REST API and the other nodes reach of it (`write_door`,
//! `read_door`, `peer_service`).

mod addresses;
#[cfg(test)]
mod alone;
mod autopilot;
pub(crate) mod backlog;
mod backups;
pub(crate) mod bootstrap;
pub(crate) mod deeds;
mod description;
mod disk_watch;
mod divergence;
mod error;
mod freshness;
pub(crate) mod join_tokens;
pub(crate) mod joining;
mod kept_backups;
pub(crate) mod leadership;
mod level;
pub(crate) mod membership;
mod mirror;
mod own_past;
pub(crate) mod partition_door;
pub(crate) mod peer_service;
mod propose;
pub(crate) mod read_door;
mod read_index;
mod read_metrics;
mod read_quorum;
mod removal;
mod replacement;
pub(crate) mod replica;
mod room;
pub(crate) mod round_trips;
mod running;
pub(crate) mod sites;
pub(crate) mod slot;
mod snapshot_intake;
mod snapshots;
mod stamp;
pub(crate) mod standards;
mod standards_sync;
mod start;
pub(crate) mod succession;
pub(crate) mod wall_time;
pub(crate) mod write_door;
mod write_ids;
mod write_path;

pub use addresses::Addresses;
pub use error::{Refused, StartError};
pub use joining::settle_number;
pub(crate) use read_metrics::ReadMetrics;
pub(crate) use running::Running;
