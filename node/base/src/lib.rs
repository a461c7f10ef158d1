//! What the REST edge, the store and the cluster stand on: settings, network, clock, threads and
//! tasks, traces, records, and the two traits by which the edge knows the cluster.
//!
//! It knows the model, and neither openraft, RocksDB nor a route.

pub mod backend;
pub mod contain;
pub mod coverage;
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
