//! The JSON of this service's own routes and of the admin listener. A node writes these types, and
//! the client, `placementctl` and the pages read them, so that a field has one name and one
//! description. Names borrow from the node's state where an answer may be long.
//!
//! [`upstream`] has what tools and pages read of the OpenStack Placement API. [`Dialect`] is the
//! SQL that node and client write for one database.

pub mod capacity;
pub mod consumers;
pub mod events;
pub mod explain;
pub mod microversion;
mod number;
mod operators;
pub mod rules;
pub mod searches;
mod sql;
mod topology;
pub mod trees;
pub mod upstream;
pub mod what_if;

pub use number::Capacity;
pub use operators::{
    BackupReport, CheckReport, Finding, IMPORT_BYTES_MAX, ImportReport, JoinToken,
    MeasuredRoundTrip, Member, MemberRole, NodeRole, NodeStatus, Partition,
};
pub use sql::Dialect;
pub use topology::{
    FailureDomain, Loss, MemberStanding, PartitionCosts, Reads, RoundTrip, SiteCosts, SiteReads,
    Survived, Topology,
};
