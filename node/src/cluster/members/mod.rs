//! Who belongs to the cluster: operators' changes, tokens for new nodes, replacement of lost ones.

pub(crate) mod autopilot;
pub(crate) mod description;
pub(crate) mod join_tokens;
pub(crate) mod membership;
pub(crate) mod removal;
pub(crate) mod replacement;
