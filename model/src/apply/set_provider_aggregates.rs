//! `PUT /resource_providers/{uuid}/aggregates`

use std::collections::BTreeSet;

use super::{Decision, provider};
use crate::state::State;
use crate::state::change::{Change, Changes};
use crate::types::{AggregateUuid, Generation, ProviderUuid, Timestamp};

/// Replaces the aggregates of a provider. From 1.19 the generation is checked and always rises;
/// before, neither.
pub(super) fn set_provider_aggregates(
    state: &State,
    at: Timestamp,
    provider: &ProviderUuid,
    generation: Option<Generation>,
    aggregates: &BTreeSet<AggregateUuid>,
) -> Decision {
    let found = provider::find(state, provider)?;
    if let Some(generation) = generation {
        found.check_generation(generation)?;
    }
    let mut changes = Changes::new();
    if *aggregates != *found.node.aggregates {
        changes.push(Change::PutProviderAggregates(
            found.node.id,
            aggregates.clone(),
        ));
    }
    if generation.is_none() {
        return Ok((found.kept(at), changes));
    }
    changes.push(found.bump(at));
    Ok((found.written(at), changes))
}
