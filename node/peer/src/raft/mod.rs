//! What Raft, writes and operators say between nodes, over [`crate::transport`]: the messages,
//! openraft's network, and the connections to the other members.

pub mod append;
pub mod messages;
pub mod network;
pub mod peers;
pub mod snapshots;
