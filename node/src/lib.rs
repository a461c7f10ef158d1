//! The placement server: one node of a replicated cluster that serves the OpenStack Placement API.

pub mod cluster;
pub mod http;
