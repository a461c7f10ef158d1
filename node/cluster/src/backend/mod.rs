//! Implements the traits of `placement_base::backend` for the whole cluster and for one partition.

pub mod ledger_reader;
pub mod partition;
pub mod read;
