//! `POST /reshaper`, which moves inventories together with their allocations.

use super::draft::Draft;
use super::holds::HoldUpdate;
use super::inventories;
use super::providers::ExistingProvider;
use super::{Decide, Decision, claims, consumers};
use crate::command::{Reshape, ReshapedInventories};
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::ProviderId;
use crate::types::Timestamp;

/// Moves inventories and allocations atomically.
///
/// The internal steps are the same as upstream's, and each step increments generations: first every
/// provider gets the new inventories next to the old ones, then the allocations move, then the old
/// inventories are deleted. Reserved amounts are not checked. Holds remain as they are.
impl Decide for Reshape {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let providers = inspect_inventories(state, &self.inventories)?;
        let request = consumers::inspect(state, at, &self.allocations)?;
        let mut scratch = state.clone();
        let mut draft = Draft::new(&mut scratch);
        let mut final_stocks = Vec::with_capacity(providers.len());
        for (id, reshaped) in &providers {
            let stocks = inventories::stocks(state, &reshaped.inventories)?;
            if !stocks.is_empty() {
                draft.step(|state, changes| {
                    let found = found(state, *id);
                    inventories::put(&found, &stocks, at, changes);
                    changes.push(found.bump(at));
                    Ok(())
                })?;
            }
            final_stocks.push((*id, stocks));
        }
        let holds = HoldUpdate::default();
        draft.step(|state, changes| claims::claim(state, at, &request, &holds, changes))?;
        for (id, stocks) in &final_stocks {
            draft.step(|state, changes| {
                inventories::replace(&found(state, *id), stocks, at, changes)
            })?;
        }
        Ok((Reply::Done, draft.into_changes()))
    }
}

/// Finds the providers and checks their generations, one by one.
fn inspect_inventories<'a>(
    state: &State,
    inventories: &'a [ReshapedInventories],
) -> Result<Vec<(ProviderId, &'a ReshapedInventories)>, Refusal> {
    let inspect = |reshaped: &'a ReshapedInventories| {
        let place = state
            .place_given(&reshaped.provider)
            .ok_or_else(|| Refusal::ReshapeProviderNotFound(reshaped.provider.clone()))?;
        let found = ExistingProvider::new(state, place);
        found.check_generation(reshaped.generation)?;
        Ok((found.node.id, reshaped))
    };
    inventories.iter().map(inspect).collect()
}

/// A provider of the request, in the state of the current step.
fn found(state: &State, id: ProviderId) -> ExistingProvider<'_> {
    let place = state.place_by_id(id);
    ExistingProvider::new(state, place.expect("a reshape removes no provider"))
}
