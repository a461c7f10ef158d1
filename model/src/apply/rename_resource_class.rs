//! `PUT /resource_classes/{name}` of 1.2 to 1.6

use super::{Decision, inventories};
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, NameRow};
use crate::types::{ResourceClassName, Timestamp};

/// Gives a custom class another name, also while it is in use.
pub(super) fn rename_resource_class(
    state: &State,
    at: Timestamp,
    name: &ResourceClassName,
    new_name: &ResourceClassName,
) -> Decision {
    let id = inventories::class_id(state, name)?;
    if !name.is_custom() {
        return Err(Refusal::ResourceClassStandardUpdate(name.clone()).into());
    }
    if state
        .resource_class_id(new_name)
        .is_some_and(|other| other != id)
    {
        return Err(Refusal::ResourceClassExists(new_name.clone()).into());
    }
    if !new_name.is_custom() {
        return Err(Refusal::ResourceClassStandardUpdate(new_name.clone()).into());
    }
    let row = NameRow {
        name: new_name.clone(),
        updated_at: at,
    };
    let changes = vec![Change::PutResourceClass(id, row)];
    Ok((
        Reply::Named {
            created: false,
            modified: at,
        },
        changes,
    ))
}
