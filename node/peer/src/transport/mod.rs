//! Calls between nodes: framed, multiplexed, versioned, each with a deadline.
//!
//! The transport handles bytes, call numbers and deadlines. [`crate::raft`] and the
//! [`handler::Handler`] interpret the bytes.

mod calls;
pub mod channel;
pub mod damage;
pub mod denied;
pub(crate) mod frame;
pub mod greeting;
pub mod handler;
mod joiner;
pub(crate) mod log_throttle;
pub mod method;
pub mod packing;
pub mod reception;
pub mod reply;
pub mod round_trips;
mod settings;
pub(crate) mod wire_io;

pub use settings::PeerSection;
