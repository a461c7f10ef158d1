//! `DELETE /resource_classes/{name}`

use super::{Decision, inventories};
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::Change;
use crate::types::ResourceClassName;

/// Removes a custom class of which there is no inventory.
pub(super) fn delete_resource_class(state: &State, name: &ResourceClassName) -> Decision {
    let id = inventories::class_id(state, name)?;
    if !name.is_custom() {
        return Err(Refusal::ResourceClassStandardDelete(name.clone()).into());
    }
    if state.resource_class_uses(id) > 0 {
        return Err(Refusal::ResourceClassInUse(name.clone()).into());
    }
    Ok((Reply::Done, vec![Change::DeleteResourceClass(id)]))
}
