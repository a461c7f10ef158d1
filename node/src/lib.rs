//! The placement server: one node of a replicated cluster that serves the OpenStack Placement API.
//!
//! [`Node::start`] starts the whole server: the binary, the tests and the simulations use it.

pub mod admin;
mod api_port;
mod bucket;
pub mod cluster;
pub mod config;
mod descriptors;
mod disk_space;
pub mod env;
mod health;
pub mod logging;
mod metrics;
#[cfg(test)]
mod new_store;
mod newest;
mod node;
mod offline;
mod panics;
mod partitions;
mod permissions;
pub mod program;
mod recent;
mod rpc;
mod serve;
mod supervisor;
mod tasks;
mod tls;
pub mod topology;
mod traces;
mod version;
mod web;

pub use cluster::{Addresses, StartError};
pub use config::{Config, ConfigError};
pub use env::Env;
pub use node::{Node, Role};
