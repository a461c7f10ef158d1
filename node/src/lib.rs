//! The placement server: one node of a replicated cluster that serves the OpenStack Placement API.
//!
//! [`Node::start`] is the whole server: the binary, the tests and the simulations start the same.

pub mod cluster;
pub mod config;
pub mod env;
pub mod http;
mod node;
mod rpc;
mod tasks;

pub use config::{Config, ConfigError};
pub use env::Env;
pub use node::{Addresses, Node, Role, StartError};
