//! Commands on traits, and on the traits of a provider.

use std::collections::BTreeSet;

use super::providers::ExistingProvider;
use super::{Decide, Decision, ensure, names, providers};
use crate::command::{DeleteProviderTraits, DeleteTrait, EnsureTrait, ReplaceProviderTraits};
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, Changes, RowKey, TraitId};
use crate::types::{Given, Timestamp, TraitName};

/// Replaces the traits of a provider. The generation is incremented only if the set changes.
fn put_traits(found: &ExistingProvider<'_>, traits: BTreeSet<TraitId>, at: Timestamp) -> Decision {
    if traits == *found.node.traits {
        return found.kept(at, Changes::new());
    }
    found.bumped(at, vec![Change::PutProviderTraits(found.node.id, traits)])
}

/// `PUT /resource_providers/{uuid}/traits`: replaces the traits of a provider.
impl Decide for ReplaceProviderTraits {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = providers::find(state, &self.provider)?;
        found.check_generation(self.generation)?;
        let traits = state.traits_given(&self.traits);
        put_traits(&found, traits.map_err(Refusal::TraitsNotFound)?, at)
    }
}

/// `DELETE /resource_providers/{uuid}/traits`: removes all traits from a provider. The generation
/// is not checked.
impl Decide for DeleteProviderTraits {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        put_traits(
            &providers::find(state, &self.provider)?,
            BTreeSet::new(),
            at,
        )
    }
}

fn ensure_custom(name: &TraitName) -> Result<(), Refusal> {
    ensure(name.is_custom(), || Refusal::TraitStandard(name.clone()))
}

/// `PUT /traits/{name}`: creates a custom trait, unless it exists.
impl Decide for EnsureTrait {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        if let Some(modified) = state.trait_(&self.name) {
            return names::keep(modified);
        }
        ensure_custom(&self.name)?;
        names::create(state, at, &self.name)
    }
}

/// `DELETE /traits/{name}`: deletes a custom trait that no provider has.
impl Decide for DeleteTrait {
    fn decide(&self, state: &State, _at: Timestamp) -> Decision {
        let name = &self.name;
        let id = state
            .trait_id(name)
            .ok_or_else(|| Refusal::TraitsNotFound(vec![Given::Valid(name.clone())]))?;
        ensure_custom(name)?;
        let is_free = state.traits.uses(id.0) == 0;
        ensure(is_free, || Refusal::TraitInUse(name.clone()))?;
        Ok((Reply::Done, vec![Change::Delete(RowKey::Trait(id))]))
    }
}
