//! Membership: operators' changes, join tokens, replacement of lost nodes.

pub(crate) mod autopilot;
pub(crate) mod description;
pub(crate) mod join_tokens;
pub(crate) mod membership;
pub(crate) mod removal;
pub(crate) mod replacement;
