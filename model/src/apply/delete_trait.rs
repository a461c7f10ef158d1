//! `DELETE /traits/{name}`

use super::{Decide, Decision};
use crate::command::DeleteTrait;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::Change;
use crate::types::{Given, Timestamp};

/// Removes a custom trait that no provider has.
impl Decide for DeleteTrait {
    fn decide(&self, state: &State, _at: Timestamp) -> Decision {
        let name = &self.name;
        let Some(id) = state.trait_id(name) else {
            return Err(Refusal::TraitsNotFound(vec![Given::Valid(name.clone())]).into());
        };
        if !name.is_custom() {
            return Err(Refusal::TraitStandard(name.clone()).into());
        }
        if state.trait_uses(id) > 0 {
            return Err(Refusal::TraitInUse(name.clone()).into());
        }
        Ok((Reply::Done, vec![Change::DeleteTrait(id)]))
    }
}
