//! What the verbs that write inventories have in common.

use std::collections::BTreeMap;

use super::provider::Found;
use crate::command::CapacityRule;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, Changes, InventoryRow, ResourceClassId};
use crate::types::{Capacity, Given, Inventory, ResourceClassName, Timestamp};

/// Inventories with their classes looked up.
pub(super) type Stocks = BTreeMap<ResourceClassId, Inventory>;

/// Refuses the first inventory that keeps too much back.
pub(super) fn check_capacity<'a>(
    found: &Found<'_>,
    inventories: impl IntoIterator<Item = (&'a Given<ResourceClassName>, &'a Inventory)>,
    rule: CapacityRule,
) -> Result<(), Refusal> {
    for (resource_class, inventory) in inventories {
        let capacity = inventory.capacity();
        let may_reserve_all = rule == CapacityRule::NotNegative;
        if capacity < Capacity::ZERO || (capacity == Capacity::ZERO && !may_reserve_all) {
            return Err(Refusal::InventoryCapacity {
                provider: found.node.uuid,
                resource_class: resource_class.clone(),
                may_reserve_all,
            });
        }
    }
    Ok(())
}

/// The id of a class, refused if there is none.
pub(super) fn class_id(
    state: &State,
    name: &Given<ResourceClassName>,
) -> Result<ResourceClassId, Refusal> {
    state
        .class_given(name)
        .ok_or_else(|| Refusal::ResourceClassNotFound(name.clone()))
}

/// Looks the classes up.
pub(super) fn stocks(
    state: &State,
    inventories: &BTreeMap<Given<ResourceClassName>, Inventory>,
) -> Result<Stocks, Refusal> {
    inventories
        .iter()
        .map(|(name, inventory)| Ok((class_id(state, name)?, *inventory)))
        .collect()
}

/// Puts inventories, whether they exist or not.
pub(super) fn put(found: &Found<'_>, stocks: &Stocks, at: Timestamp, changes: &mut Changes) {
    for (class, inventory) in stocks {
        let row = InventoryRow {
            inventory: *inventory,
            updated_at: at,
        };
        changes.push(Change::PutInventory(found.node.id, *class, row));
    }
}

/// Makes these the only inventories of a provider and raises its generation.
pub(super) fn replace(
    state: &State,
    found: &Found<'_>,
    stocks: &Stocks,
    at: Timestamp,
    changes: &mut Changes,
) -> Result<(), Refusal> {
    let gone = || {
        found
            .node
            .inventories
            .iter()
            .filter(|old| !stocks.contains_key(&old.class))
    };
    let in_use: Vec<_> = gone()
        .filter(|old| old.used > 0)
        .map(|old| state.resource_class_name(old.class).clone())
        .collect();
    if !in_use.is_empty() {
        let provider = found.node.uuid;
        return Err(Refusal::InventoryInUse {
            provider,
            resource_classes: in_use,
        });
    }
    changes.extend(gone().map(|old| Change::DeleteInventory(found.node.id, old.class)));
    put(found, stocks, at, changes);
    changes.push(found.bump(at));
    Ok(())
}

/// Writes one inventory, new or not, and raises the provider's generation.
pub(super) fn put_one(
    found: &Found<'_>,
    class: ResourceClassId,
    inventory: Inventory,
    at: Timestamp,
) -> (Reply, Changes) {
    let mut changes = Changes::new();
    put(found, &Stocks::from([(class, inventory)]), at, &mut changes);
    changes.push(found.bump(at));
    (found.written(at), changes)
}
