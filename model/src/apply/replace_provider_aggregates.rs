//! `PUT /resource_providers/{uuid}/aggregates`

use super::{Decide, Decision, provider};
use crate::command::ReplaceProviderAggregates;
use crate::state::State;
use crate::state::change::{Change, Changes};
use crate::types::Timestamp;

/// Replaces the aggregates of a provider. From 1.19 the generation is checked and always rises;
/// before, neither.
impl Decide for ReplaceProviderAggregates {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = provider::find(state, &self.provider)?;
        if let Some(generation) = self.generation {
            found.check_generation(generation)?;
        }
        let mut changes = Changes::new();
        if self.aggregates != *found.node.aggregates {
            changes.push(Change::PutProviderAggregates(
                found.node.id,
                self.aggregates.clone(),
            ));
        }
        if self.generation.is_none() {
            return Ok((found.kept(at), changes));
        }
        changes.push(found.bump(at));
        Ok((found.written(at), changes))
    }
}
