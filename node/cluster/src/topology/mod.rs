//! Tolerated losses of a cluster, and latency of reads and writes at each site, computed from the
//! members' sites and round trips. This module sends no requests and changes nothing.

mod costs;
mod losses;
mod report;

pub use costs::RoundTrips;
pub use losses::Extent;
pub use losses::{MemberStatus, made_fatal};
pub use report::{ms, topology_of};
