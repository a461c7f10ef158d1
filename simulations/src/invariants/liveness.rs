//! Once nothing fails, everything goes on within a bound that follows from what was drawn
//! ([`crate::parameters::Parameters::bounds`]): the cluster forms, clients get their writes
//! through, every node answers everything, and all come to the same state. A node starts on the
//! data that it has left, whatever fails (the architecture: a majority that can talk makes
//! progress).

/// Its name in complaints.
pub const NAME: &str = "liveness";
