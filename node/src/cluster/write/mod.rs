//! The path of a write: its id, the way to the leader, its proposal there.

pub(crate) mod own_past;
pub(crate) mod path;
pub(crate) mod proposals;
pub(crate) mod wall_time;
