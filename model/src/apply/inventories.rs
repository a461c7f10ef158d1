//! Commands that change inventories.

use std::collections::BTreeMap;

use super::providers::ExistingProvider;
use super::{Decide, Decision, ensure, names, providers};
use crate::command::{
    CapacityRule, CreateInventory, DeleteInventories, DeleteInventory, ReplaceInventories,
    UpdateInventory,
};
use crate::outcome::Refusal;
use crate::state::State;
use crate::state::change::{Change, Changes, InventoryRow, ResourceClassId, RowKey};
use crate::types::{Capacity, Given, Inventory, ResourceClassName, Timestamp};

/// Inventories by the id of their class.
pub(super) type Stocks = BTreeMap<ResourceClassId, Inventory>;

/// Refuses the first inventory that reserves too much.
pub(super) fn check_capacity<'a>(
    found: &ExistingProvider<'_>,
    inventories: impl IntoIterator<Item = (&'a Given<ResourceClassName>, &'a Inventory)>,
    rule: CapacityRule,
) -> Result<(), Refusal> {
    for (resource_class, inventory) in inventories {
        let capacity = inventory.capacity();
        let may_reserve_all = rule == CapacityRule::NotNegative;
        let is_enough =
            capacity > Capacity::ZERO || (capacity == Capacity::ZERO && may_reserve_all);
        ensure(is_enough, || Refusal::InventoryCapacity {
            provider: found.node.uuid,
            resource_class: resource_class.clone(),
            may_reserve_all,
        })?;
    }
    Ok(())
}

/// Looks up the ids of the classes.
pub(super) fn stocks(
    state: &State,
    inventories: &BTreeMap<Given<ResourceClassName>, Inventory>,
) -> Result<Stocks, Refusal> {
    inventories
        .iter()
        .map(|(name, inventory)| Ok((names::class_id(state, name)?, *inventory)))
        .collect()
}

/// Writes inventories, which may be new.
pub(super) fn put(
    found: &ExistingProvider<'_>,
    stocks: &Stocks,
    at: Timestamp,
    changes: &mut Changes,
) {
    for (class, inventory) in stocks {
        let row = InventoryRow {
            inventory: *inventory,
            updated_at: at,
        };
        changes.push(Change::PutInventory(found.node.id, *class, row));
    }
}

/// Replaces all inventories of a provider and increments its generation.
pub(super) fn replace(
    found: &ExistingProvider<'_>,
    stocks: &Stocks,
    at: Timestamp,
    changes: &mut Changes,
) -> Result<(), Refusal> {
    let old = found.node.inventories.iter();
    let gone = || old.clone().filter(|old| !stocks.contains_key(&old.class));
    let in_use: Vec<_> = gone()
        .filter(|old| old.used > 0)
        .map(|old| found.class_name(old.class))
        .collect();
    ensure(in_use.is_empty(), || {
        Refusal::InventoryInUse(found.node.uuid, in_use)
    })?;
    changes.extend(gone().map(|old| Change::Delete(RowKey::Inventory(found.node.id, old.class))));
    put(found, stocks, at, changes);
    changes.push(found.bump(at));
    Ok(())
}

/// Writes one inventory, which may be new, and increments the provider's generation.
fn put_one(
    found: &ExistingProvider<'_>,
    class: ResourceClassId,
    inventory: Inventory,
    at: Timestamp,
) -> Decision {
    let mut changes = Changes::new();
    put(found, &Stocks::from([(class, inventory)]), at, &mut changes);
    found.bumped(at, changes)
}

/// Refuses if the provider has no inventory of the class.
fn check_found(found: &ExistingProvider<'_>, class: ResourceClassId) -> Result<(), Refusal> {
    let stock = found.node.stock(class);
    ensure(stock.is_some(), || {
        Refusal::InventoryNotFound(found.node.uuid, found.class_name(class))
    })
}

/// `POST /resource_providers/{uuid}/inventories`: adds one inventory. The generation is not
/// checked.
impl Decide for CreateInventory {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = providers::find(state, &self.provider)?;
        let inventory = [(&self.resource_class, &self.inventory)];
        check_capacity(&found, inventory, self.capacity_rule)?;
        let class = names::class_id(state, &self.resource_class)?;
        let is_new = found.node.stock(class).is_none();
        ensure(is_new, || {
            Refusal::InventoryExists(self.provider, found.class_name(class))
        })?;
        put_one(&found, class, self.inventory, at)
    }
}

/// `PUT /resource_providers/{uuid}/inventories/{class}`: replaces one inventory. The capacity may
/// fall below the usage.
impl Decide for UpdateInventory {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = providers::find(state, &self.provider)?;
        found.check_generation(self.generation)?;
        let inventory = [(&self.resource_class, &self.inventory)];
        check_capacity(&found, inventory, self.capacity_rule)?;
        let class = names::class_id(state, &self.resource_class)?;
        check_found(&found, class)?;
        put_one(&found, class, self.inventory, at)
    }
}

/// `DELETE /resource_providers/{uuid}/inventories/{class}`: deletes one unused inventory.
impl Decide for DeleteInventory {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = providers::find(state, &self.provider)?;
        let class = names::class_id(state, &self.resource_class)?;
        check_found(&found, class)?;
        let in_use = found.node.stock(class).is_some_and(|stock| stock.used > 0);
        ensure(!in_use, || {
            Refusal::InventoryInUse(self.provider, vec![found.class_name(class)])
        })?;
        found.bumped(
            at,
            vec![Change::Delete(RowKey::Inventory(found.node.id, class))],
        )
    }
}

/// `DELETE /resource_providers/{uuid}/inventories`: deletes all inventories. The generation is
/// incremented even if the provider has no inventories.
impl Decide for DeleteInventories {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = providers::find(state, &self.provider)?;
        let mut changes = Changes::new();
        replace(&found, &Stocks::new(), at, &mut changes)?;
        Ok((found.written(at), changes))
    }
}

/// `PUT /resource_providers/{uuid}/inventories`: replaces all inventories of a provider. Checks
/// generation, capacities, classes and usage, in this order.
impl Decide for ReplaceInventories {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = providers::find(state, &self.provider)?;
        found.check_generation(self.generation)?;
        check_capacity(&found, &self.inventories, self.capacity_rule)?;
        let stocks = stocks(state, &self.inventories)?;
        let mut changes = Changes::new();
        replace(&found, &stocks, at, &mut changes)?;
        Ok((found.written(at), changes))
    }
}
