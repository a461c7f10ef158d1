//! Calls between nodes: framed, multiplexed, versioned, each with a deadline.

pub(crate) mod channel;
pub(crate) mod denied;
mod frame;
pub(crate) mod message;
pub(crate) mod peers;
pub(crate) mod raft;
mod seldom;
pub(crate) mod server;
pub(crate) mod snapshots;
mod wire_io;
