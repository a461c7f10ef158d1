//! How far a read must be, and the proof that the leader still leads.

pub(crate) mod index;
pub(crate) mod quorum;
