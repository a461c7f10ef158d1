//! `DELETE /resource_providers/{uuid}`

use std::collections::BTreeSet;

use super::{Decision, provider};
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, Changes};
use crate::types::ProviderUuid;

/// Removes a provider with its inventories, traits and aggregates. Children are found before
/// allocations are.
pub(super) fn delete_provider(state: &State, uuid: &ProviderUuid) -> Decision {
    let found = provider::find(state, uuid)?;
    if found.has_children() {
        return Err(Refusal::ProviderHasChildren(*uuid).into());
    }
    if found.node.in_use() {
        return Err(Refusal::ProviderInUse(*uuid).into());
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
