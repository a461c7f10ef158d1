//! `PUT /traits/{name}`

use super::{Decide, Decision, names};
use crate::command::EnsureTrait;
use crate::outcome::Refusal;
use crate::state::State;
use crate::types::Timestamp;

/// Makes a custom trait, unless it exists.
impl Decide for EnsureTrait {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        if let Some(modified) = state.trait_(&self.name) {
            return names::keep(modified);
        }
        if !self.name.is_custom() {
            return Err(Refusal::TraitStandard(self.name.clone()).into());
        }
        names::create(state, at, &self.name)
    }
}
