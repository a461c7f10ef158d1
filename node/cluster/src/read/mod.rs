//! The read index, and the proof that the leader still leads.

pub(crate) mod index;
pub(crate) mod quorum;
