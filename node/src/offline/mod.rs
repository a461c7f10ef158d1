//! What `placementd` does without running a node: mostly with the data directory of one that does not run.

pub(crate) mod fetch;
pub(crate) mod inspect;
mod moment;
pub(crate) mod policy;
pub(crate) mod recover;
pub(crate) mod replay;
pub(crate) mod restore;
pub(crate) mod transfer;
