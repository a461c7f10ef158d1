//! Commands on resource classes.

use super::{Decide, Decision, ensure, names};
use crate::command::{
    CreateResourceClass, DeleteResourceClass, EnsureResourceClass, RenameResourceClass,
};
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, NameRow, RowKey};
use crate::types::{Given, ResourceClassName, Timestamp};

fn ensure_custom(name: &ResourceClassName) -> Result<(), Refusal> {
    ensure(name.is_custom(), || {
        Refusal::ResourceClassStandardUpdate(name.clone())
    })
}

/// `POST /resource_classes`: creates a new custom class.
impl Decide for CreateResourceClass {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let is_new = state.resource_class_id(&self.name).is_none();
        ensure(is_new, || Refusal::ResourceClassExists(self.name.clone()))?;
        ensure_custom(&self.name)?;
        names::create(state, at, &self.name)
    }
}

/// `PUT /resource_classes/{name}` from 1.7 on: creates a custom class, unless it exists.
impl Decide for EnsureResourceClass {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        if let Some(modified) = state.resource_class(&self.name) {
            return names::keep(modified);
        }
        ensure_custom(&self.name)?;
        names::create(state, at, &self.name)
    }
}

/// `PUT /resource_classes/{name}` from 1.2 to 1.6: renames a custom class, even if it is in use.
impl Decide for RenameResourceClass {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let Self { name, new_name } = self;
        let id = names::class_id(state, &Given::Valid(name.clone()))?;
        ensure_custom(name)?;
        let other = state.resource_class_id(new_name);
        let is_free = other.is_none_or(|other| other == id);
        ensure(is_free, || Refusal::ResourceClassExists(new_name.clone()))?;
        ensure_custom(new_name)?;
        let row = NameRow {
            name: new_name.clone(),
            updated_at: at,
        };
        Ok((
            names::reply(false, at),
            vec![Change::PutResourceClass(id, row)],
        ))
    }
}

/// `DELETE /resource_classes/{name}`: deletes a custom class without inventories.
impl Decide for DeleteResourceClass {
    fn decide(&self, state: &State, _at: Timestamp) -> Decision {
        let name = &self.name;
        let id = names::class_id(state, &Given::Valid(name.clone()))?;
        ensure(name.is_custom(), || {
            Refusal::ResourceClassStandardDelete(name.clone())
        })?;
        let is_free = state.resource_classes.uses(id.0) == 0;
        ensure(is_free, || Refusal::ResourceClassInUse(name.clone()))?;
        Ok((Reply::Done, vec![Change::Delete(RowKey::ResourceClass(id))]))
    }
}
