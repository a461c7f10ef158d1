//! Calls between nodes: framed, multiplexed, versioned, each with a deadline.
//!
//! The transport knows bytes, the numbers of calls and their deadlines. The meaning of the bytes
//! is the business of [`crate::raft`] and of the [`handler::Handler`].

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
