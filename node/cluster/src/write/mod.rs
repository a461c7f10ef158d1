//! The path of a write: its id, the way to the leader, its proposal there.

pub mod own_past;
pub mod path;
pub mod proposals;
pub mod wall_time;
