//! `PUT /resource_classes/{name}` from 1.7

use super::{Decide, Decision, names};
use crate::command::EnsureResourceClass;
use crate::outcome::Refusal;
use crate::state::State;
use crate::types::Timestamp;

/// Makes a custom class, unless it exists.
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
