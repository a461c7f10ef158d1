//! `PUT /resource_classes/{name}` from 1.7

use super::{Decision, create_resource_class};
use crate::outcome::Reply;
use crate::state::State;
use crate::state::change::Changes;
use crate::types::{ResourceClassName, Timestamp};

/// Makes a custom class, unless it exists.
pub(super) fn ensure_resource_class(
    state: &State,
    at: Timestamp,
    name: &ResourceClassName,
) -> Decision {
    match state.resource_class(name) {
        Some(modified) => Ok((
            Reply::Named {
                created: false,
                modified,
            },
            Changes::new(),
        )),
        None => create_resource_class::create_resource_class(state, at, name),
    }
}
