//! The REST edge: the OpenStack Placement API over HTTP.
//!
//! It depends on the model and, through the traits of [`placement_base::backend`], on the cluster.
//! It does not depend on openraft or RocksDB.

pub mod fork;
pub mod http;
pub mod keystone;
