//! Traits, and the traits of a provider.

use std::collections::BTreeSet;

use super::{Decide, Decision, names, providers};
use crate::command::{DeleteProviderTraits, DeleteTrait, EnsureTrait, ReplaceProviderTraits};
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, Changes};
use crate::types::{Given, Timestamp};

/// `PUT /resource_providers/{uuid}/traits`: replaces the traits of a provider. The generation rises only if the set changes.
impl Decide for ReplaceProviderTraits {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = providers::find(state, &self.provider)?;
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

/// `DELETE /resource_providers/{uuid}/traits`: takes all traits off a provider. No generation is asked for; it rises if there were any.
impl Decide for DeleteProviderTraits {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = providers::find(state, &self.provider)?;
        if found.node.traits.is_empty() {
            return Ok((found.kept(at), Changes::new()));
        }
        let changes = vec![
            Change::PutProviderTraits(found.node.id, BTreeSet::new()),
            found.bump(at),
        ];
        Ok((found.written(at), changes))
    }
}

/// `PUT /traits/{name}`: makes a custom trait, unless it exists.
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

/// `DELETE /traits/{name}`: removes a custom trait that no provider has.
impl Decide for DeleteTrait {
    fn decide(&self, state: &State, _at: Timestamp) -> Decision {
        let name = &self.name;
        let Some(id) = state.trait_id(name) else {
            return Err(Refusal::TraitsNotFound(vec![Given::Valid(name.clone())]).into());
        };
        if !name.is_custom() {
            return Err(Refusal::TraitStandard(name.clone()).into());
        }
        if state.traits.uses(id.0) > 0 {
            return Err(Refusal::TraitInUse(name.clone()).into());
        }
        Ok((Reply::Done, vec![Change::DeleteTrait(id)]))
    }
}
