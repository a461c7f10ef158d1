//! `PUT /resource_providers/{uuid}/traits`

use std::collections::BTreeSet;

use super::{Decide, Decision, provider};
use crate::command::ReplaceProviderTraits;
use crate::outcome::Refusal;
use crate::state::State;
use crate::state::change::{Change, Changes};
use crate::types::Timestamp;

/// Replaces the traits of a provider. The generation rises only if the set changes.
impl Decide for ReplaceProviderTraits {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = provider::find(state, &self.provider)?;
        found.check_generation(self.generation)?;
        let mut traits = BTreeSet::new();
        let mut unknown = Vec::new();
        for name in &self.traits {
            match state.trait_given(name) {
                Some(id) => drop(traits.insert(id)),
                None => unknown.push(name.clone()),
            }
        }
        if !unknown.is_empty() {
            return Err(Refusal::TraitsNotFound(unknown).into());
        }
        if traits == *found.node.traits {
            return Ok((found.kept(at), Changes::new()));
        }
        let changes = vec![
            Change::PutProviderTraits(found.node.id, traits),
            found.bump(at),
        ];
        Ok((found.written(at), changes))
    }
}
