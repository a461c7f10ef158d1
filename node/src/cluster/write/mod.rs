//! The way of a write: its id, its way to the leader, its proposal there.

pub(crate) mod own_past;
pub(crate) mod path;
pub(crate) mod proposals;
pub(crate) mod wall_time;
