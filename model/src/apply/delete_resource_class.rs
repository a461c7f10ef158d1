//! `DELETE /resource_classes/{name}`

use super::{Decide, Decision, names};
use crate::command::DeleteResourceClass;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::Change;
use crate::types::Timestamp;

/// Removes a custom class of which there is no inventory.
impl Decide for DeleteResourceClass {
    fn decide(&self, state: &State, _at: Timestamp) -> Decision {
        let name = &self.name;
        let id = names::class_id(state, name)?;
        if !name.is_custom() {
            return Err(Refusal::ResourceClassStandardDelete(name.clone()).into());
        }
        if state.resource_class_uses(id) > 0 {
            return Err(Refusal::ResourceClassInUse(name.clone()).into());
        }
        Ok((Reply::Done, vec![Change::DeleteResourceClass(id)]))
    }
}
