//! `PUT /resource_providers/{uuid}/traits`

use std::collections::BTreeSet;

use super::{Decision, provider};
use crate::outcome::Refusal;
use crate::state::State;
use crate::state::change::{Change, Changes};
use crate::types::{Generation, ProviderUuid, Timestamp, TraitName};

/// Replaces the traits of a provider. The generation rises only if the set changes.
pub(super) fn set_provider_traits(
    state: &State,
    at: Timestamp,
    provider: &ProviderUuid,
    generation: Generation,
    traits: &BTreeSet<TraitName>,
) -> Decision {
    let found = provider::find(state, provider)?;
    found.check_generation(generation)?;
    let unknown: Vec<_> = traits
        .iter()
        .filter(|name| state.trait_id(name).is_none())
        .cloned()
        .collect();
    if !unknown.is_empty() {
        return Err(Refusal::TraitsNotFound(unknown).into());
    }
    let traits: BTreeSet<_> = traits
        .iter()
        .filter_map(|name| state.trait_id(name))
        .collect();
    if traits == *found.node.traits {
        return Ok((found.kept(at), Changes::new()));
    }
    let changes = vec![
        Change::PutProviderTraits(found.node.id, traits),
        found.bump(at),
    ];
    Ok((found.written(at), changes))
}
