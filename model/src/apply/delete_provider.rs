//! `DELETE /resource_providers/{uuid}`

use std::collections::BTreeSet;

use super::{Decide, Decision, provider};
use crate::command::DeleteProvider;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, Changes};
use crate::types::Timestamp;

/// Removes a provider with its inventories, traits and aggregates. Children are found before
/// allocations are.
impl Decide for DeleteProvider {
    fn decide(&self, state: &State, _at: Timestamp) -> Decision {
        let found = provider::find(state, &self.uuid)?;
        if found.has_children() {
            return Err(Refusal::ProviderHasChildren(self.uuid).into());
        }
        if found.node.in_use() {
            return Err(Refusal::ProviderInUse(self.uuid).into());
        }
        let id = found.node.id;
        let inventories = found.node.inventories.iter();
        let mut changes: Changes = inventories
            .map(|stock| Change::DeleteInventory(id, stock.class))
            .collect();
        if !found.node.traits.is_empty() {
            changes.push(Change::PutProviderTraits(id, BTreeSet::new()));
        }
        if !found.node.aggregates.is_empty() {
            changes.push(Change::PutProviderAggregates(id, BTreeSet::new()));
        }
        changes.push(Change::DeleteProvider(id));
        Ok((Reply::Done, changes))
    }
}
