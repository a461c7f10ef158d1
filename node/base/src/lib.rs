//! Code that the REST edge, the store and the cluster share: settings, network, clock, threads and
//! tasks, traces, records, and the traits through which the edge uses the cluster.
//!
//! The crate depends on the model, but not on openraft, RocksDB or the routes of the API.

pub mod backend;
pub mod contain;
pub mod coverage;
pub mod log_messages;
pub mod net;
pub mod newest_connections;
pub mod permissions;
pub mod platform;
pub mod record;
pub mod runtime;
pub mod settings;
pub mod tasks;
pub mod trace;
pub mod world;
