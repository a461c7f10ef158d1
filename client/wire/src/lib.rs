//! What the admin listener of a node answers, as JSON. The node writes these types and the client reads them, so that
//! a field has one name and one description.

mod operators;
mod topology;

pub use operators::{
    BackupReport, CheckReport, Finding, JoinToken, MeasuredRoundTrip, Member, MemberRole, NodeRole,
    NodeStatus, Partition,
};
pub use topology::{
    FailureDomain, Loss, MemberStanding, PartitionCosts, Reads, RoundTrip, SiteCosts, SiteReads,
    Survived, Topology,
};
