//! What the admin listener of a node answers, as JSON. The node writes these types and the client
//! reads them, so that a field has one name and one description. And [`Dialect`]: the SQL that both
//! write for one database.

mod operators;
mod sql;
mod topology;

pub use operators::{
    BackupReport, CheckReport, Finding, IMPORT_BYTES_MAX, ImportReport, JoinToken,
    MeasuredRoundTrip, Member, MemberRole, NodeRole, NodeStatus, Partition,
};
pub use sql::Dialect;
pub use topology::{
    FailureDomain, Loss, MemberStanding, PartitionCosts, Reads, RoundTrip, SiteCosts, SiteReads,
    Survived, Topology,
};
