//! `POST /resource_classes`

use super::{Decide, Decision, names};
use crate::command::CreateResourceClass;
use crate::outcome::Refusal;
use crate::state::State;
use crate::types::Timestamp;

/// Makes a custom class that does not exist yet.
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
