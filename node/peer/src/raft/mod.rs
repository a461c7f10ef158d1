//! The messages of Raft, writes and operators between nodes, openraft's network, and the
//! connections to the other members. All use [`crate::transport`].

pub mod acknowledgements;
pub mod append;
pub mod messages;
pub mod network;
pub mod peers;
pub mod snapshots;
