//! Resource classes.

use super::{Decide, Decision, names};
use crate::command::{
    CreateResourceClass, DeleteResourceClass, EnsureResourceClass, RenameResourceClass,
};
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, NameRow};
use crate::types::Timestamp;

/// `POST /resource_classes`: makes a custom class that does not exist yet.
impl Decide for CreateResourceClass {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        if state.resource_class_id(&self.name).is_some() {
            return Err(Refusal::ResourceClassExists(self.name.clone()).into());
        }
        if !self.name.is_custom() {
            return Err(Refusal::ResourceClassStandardUpdate(self.name.clone()).into());
        }
        names::create(state, at, &self.name)
    }
}

/// `PUT /resource_classes/{name}` from 1.7: makes a custom class, unless it exists.
impl Decide for EnsureResourceClass {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        if let Some(modified) = state.resource_class(&self.name) {
            return names::keep(modified);
        }
        if !self.name.is_custom() {
            return Err(Refusal::ResourceClassStandardUpdate(self.name.clone()).into());
        }
        names::create(state, at, &self.name)
    }
}

/// `PUT /resource_classes/{name}` of 1.2 to 1.6: gives a custom class another name, also while it is in use.
impl Decide for RenameResourceClass {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let Self { name, new_name } = self;
        let id = names::class_id(state, name)?;
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
        let reply = Reply::Named {
            created: false,
            modified: at,
        };
        Ok((reply, vec![Change::PutResourceClass(id, row)]))
    }
}

/// `DELETE /resource_classes/{name}`: removes a custom class of which there is no inventory.
impl Decide for DeleteResourceClass {
    fn decide(&self, state: &State, _at: Timestamp) -> Decision {
        let name = &self.name;
        let id = names::class_id(state, name)?;
        if !name.is_custom() {
            return Err(Refusal::ResourceClassStandardDelete(name.clone()).into());
        }
        if state.resource_classes.uses(id.0) > 0 {
            return Err(Refusal::ResourceClassInUse(name.clone()).into());
        }
        Ok((Reply::Done, vec![Change::DeleteResourceClass(id)]))
    }
}
