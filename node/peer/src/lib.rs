//! Calls between the nodes of a cluster, and TLS on all listeners.
//!
//! The crate uses the store's types for Raft's messages. It does not depend on the cluster or the
//! REST API.

#![allow(
    missing_docs,
    reason = "only this workspace uses the crate; a clear name needs no comment"
)]

pub mod raft;
pub mod tls;
pub mod transport;
