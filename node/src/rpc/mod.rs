//! Calls between nodes: framed, multiplexed, versioned, each with a deadline.

pub(crate) mod channel;
pub(crate) mod damage;
pub(crate) mod denied;
mod frame;
mod joiner;
mod log_throttle;
pub(crate) mod message;
pub(crate) mod packing;
pub(crate) mod peers;
pub(crate) mod raft;
pub(crate) mod round_trips;
pub(crate) mod server;
mod settings;
pub(crate) mod snapshots;
mod wire_io;

pub(crate) use settings::PeerSection;
