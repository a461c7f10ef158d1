//! Which losses a cluster survives, what reads and writes cost at each site, and what to change: arithmetic over
//! where the members stand and how far they are from each other. It asks nobody and changes nothing.

mod advice;
mod costs;
mod losses;
mod report;

pub(crate) use costs::RoundTrips;
pub(crate) use losses::{Extent, Standing, made_fatal};
pub(crate) use report::{ms, topology_of};
