//! JSON types of this service's own routes and of the admin listener. The node, the client,
//! `placementctl` and the pages use the same types, so a field has one name and one description.
//! Strings borrow from the state of the node where a response may be long.
//!
//! [`upstream`] contains the parts of the OpenStack Placement API that tools and pages read.
//! [`Dialect`] is the SQL that nodes and clients write for one database.

pub mod capacity;
mod claim_refusal;
pub mod claims;
pub mod consumers;
pub mod events;
pub mod explain;
pub mod fits;
pub mod holds;
pub mod limits;
pub mod microversion;
mod number;
mod operators;
pub mod refuge;
pub mod rules;
pub mod searches;
mod sql;
mod topology;
pub mod trees;
pub mod upstream;
pub mod what_if;

pub use number::Capacity;
pub use operators::{
    BackupReport, CheckReport, Drained, Finding, IMPORT_BYTES_MAX, ImportReport, InitialMembers,
    JoinToken, JoinTokens, LeadershipTransfer, MeasuredRoundTrip, Member, MemberRole, NewJoinToken,
    NewLeader, NewPartition, NodeRole, NodeStatus, Partition, PartitionRoutes, SlowFollower,
};
pub use sql::Dialect;
pub use topology::{
    FailureDomain, Loss, MemberStanding, PartitionCosts, Reads, RoundTrip, SiteCosts, SiteReads,
    Survived, Topology,
};
