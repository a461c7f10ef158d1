//! The traits of `backend.rs`: for commands and reads of the whole cluster, and of one partition.

pub(crate) mod changed;
pub(crate) mod partition;
pub(crate) mod read;
pub(crate) mod write;
