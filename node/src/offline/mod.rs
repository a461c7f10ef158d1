//! What `placementd` does with the data directory of a node that does not run.

pub(crate) mod fetch;
pub(crate) mod inspect;
pub(crate) mod recover;
pub(crate) mod restore;
