//! The path of a write: forwarding to the leader, and proposal by the leader.

pub mod own_past;
pub mod path;
pub mod proposals;
pub mod wall_time;
