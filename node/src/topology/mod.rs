//! Which losses a cluster survives, what reads and writes cost at each site, and what to change:
//! arithmetic over where the members stand and how far they are from each other. It asks no one and
//! changes nothing.

mod advice;
mod costs;
mod losses;
mod report;

pub(crate) use costs::RoundTrips;
pub use losses::Extent;
pub(crate) use losses::{Standing, made_fatal};
pub(crate) use report::{ms, topology_of};
