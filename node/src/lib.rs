//! The placement server: one node of a replicated cluster that serves the OpenStack Placement API.
//!
//! [`Node::start`] starts the whole server: the binary, the tests and the simulations use it.

pub mod admin;
mod api_port;
pub mod config;
mod descriptors;
mod health;
pub mod logging;
mod metrics;
mod node;
mod offline;
mod panics;
mod partitions;
pub mod program;
mod recent;
mod serve;
mod supervisor;
mod traces;
mod version;
mod web;

pub use config::{Config, ConfigError};
pub use node::{Node, Role};
pub use placement_cluster::env::Env;
pub use placement_cluster::{Addresses, StartError};
