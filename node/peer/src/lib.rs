//! Calls between the nodes of a cluster, and TLS on all listeners.
//!
//! It knows Raft's messages by the types of the store, and neither the cluster nor the REST API.

#![allow(
    missing_docs,
    reason = "only this workspace uses the crate; a clear name needs no comment"
)]

pub mod raft;
pub mod tls;
pub mod transport;
