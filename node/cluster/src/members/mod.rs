//! Membership: operators' changes, join tokens, replacement of lost nodes.

pub mod autopilot;
pub mod description;
pub mod join_tokens;
pub mod membership;
pub mod removal;
pub mod replacement;
