//! Implements the traits of `backend.rs` for the whole cluster and for one partition.

pub(crate) mod changed;
pub(crate) mod partition;
pub(crate) mod read;
pub(crate) mod write;
