//! `PUT /resource_classes/{name}` of 1.2 to 1.6

use super::{Decide, Decision, names};
use crate::command::RenameResourceClass;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, NameRow};
use crate::types::Timestamp;

/// Gives a custom class another name, also while it is in use.
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
