//! After all faults have ended, the cluster makes progress within a bound derived from the run's
//! parameters ([`crate::parameters::Parameters::bounds`]): it forms, writes of clients succeed,
//! every node answers every request, and all nodes reach the same state. A node starts on the data
//! that it has, even during faults (architecture: a majority that can communicate makes progress).

/// Name of the invariant in violations.
pub const NAME: &str = "liveness";
