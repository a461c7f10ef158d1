//! Calls between nodes: framed, multiplexed, versioned, each with a deadline.

pub mod channel;
pub mod damage;
pub mod denied;
mod frame;
mod joiner;
mod log_throttle;
pub mod message;
pub mod packing;
pub mod peers;
pub mod raft;
pub mod round_trips;
pub mod server;
mod settings;
pub mod snapshots;
mod wire_io;

pub use settings::PeerSection;
