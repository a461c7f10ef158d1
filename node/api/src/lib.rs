//! The REST edge: the OpenStack Placement API over HTTP, and what it needs.
//!
//! It knows the model, and the cluster by the traits of [`backend`]: one for writes, one for reads.
//! It knows neither openraft nor RocksDB.

pub mod access;
pub mod audit;
pub mod backend;
pub mod contain;
pub mod fork;
pub mod http;
mod identity;
pub mod keystone;
pub mod net;
pub mod outgoing;
pub mod settings;
pub mod trace;
pub mod world;
