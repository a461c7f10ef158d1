//! Inventories of a provider, and their usage.

use std::collections::BTreeMap;

use placement_model::command::{
    CapacityRule, CreateInventory, DeleteInventory, ReplaceInventories, UpdateInventory,
};
use placement_model::outcome::Refusal;
use placement_model::state::change::InventoryRow;
use placement_model::types::{
    Generation, Given, Inventory, ProviderUuid, ResourceClassName, Timestamp,
};

use super::{ApplyResult, Naive, refuse_if};

impl Naive {
    pub(super) fn create_inventory(
        &mut self,
        at: Timestamp,
        create: &CreateInventory,
    ) -> ApplyResult {
        let (provider, inventory) = (create.provider, &create.inventory);
        self.known(&provider)?;
        capacity(
            &provider,
            &create.resource_class,
            inventory,
            create.capacity_rule,
        )?;
        let resource_class = self.named_class(&create.resource_class)?;
        refuse_if(self.has_inventory(&provider, &resource_class), || {
            Refusal::InventoryExists(provider, resource_class.clone())
        })?;
        self.write_inventory(at, &provider, &resource_class, inventory)
    }

    pub(super) fn update_inventory(
        &mut self,
        at: Timestamp,
        update: &UpdateInventory,
    ) -> ApplyResult {
        let (provider, inventory) = (update.provider, &update.inventory);
        self.known(&provider)?;
        self.same_generation(&provider, update.generation)?;
        capacity(
            &provider,
            &update.resource_class,
            inventory,
            update.capacity_rule,
        )?;
        let resource_class = self.named_class(&update.resource_class)?;
        refuse_if(!self.has_inventory(&provider, &resource_class), || {
            Refusal::InventoryNotFound(provider, resource_class.clone())
        })?;
        self.write_inventory(at, &provider, &resource_class, inventory)
    }

    pub(super) fn delete_inventory(
        &mut self,
        at: Timestamp,
        delete: &DeleteInventory,
    ) -> ApplyResult {
        let provider = delete.provider;
        self.known(&provider)?;
        let resource_class = self.named_class(&delete.resource_class)?;
        refuse_if(self.used(&provider, &resource_class) > 0, || {
            Refusal::InventoryInUse(provider, vec![resource_class.clone()])
        })?;
        refuse_if(!self.has_inventory(&provider, &resource_class), || {
            Refusal::InventoryNotFound(provider, resource_class.clone())
        })?;
        self.provider_mut(&provider)
            .inventories
            .remove(&resource_class);
        self.bump(at, &provider);
        self.written(at, &provider)
    }

    pub(super) fn delete_inventories(
        &mut self,
        at: Timestamp,
        provider: &ProviderUuid,
    ) -> ApplyResult {
        self.known(provider)?;
        self.set_inventories(at, provider, &BTreeMap::new())?;
        self.written(at, provider)
    }

    pub(super) fn replace_inventories(
        &mut self,
        at: Timestamp,
        replace: &ReplaceInventories,
    ) -> ApplyResult {
        let provider = &replace.provider;
        self.known(provider)?;
        self.same_generation(provider, replace.generation)?;
        for (class, inventory) in &replace.inventories {
            capacity(provider, class, inventory, replace.capacity_rule)?;
        }
        self.set_inventories(at, provider, &replace.inventories)?;
        self.written(at, provider)
    }

    fn has_inventory(&self, provider: &ProviderUuid, class: &ResourceClassName) -> bool {
        self.providers[provider].inventories.contains_key(class)
    }

    pub(super) fn put_inventory(
        &mut self,
        at: Timestamp,
        provider: &ProviderUuid,
        class: &ResourceClassName,
        inventory: &Inventory,
    ) {
        let row = InventoryRow {
            inventory: *inventory,
            updated_at: at,
        };
        self.provider_mut(provider)
            .inventories
            .insert(class.clone(), row);
    }

    fn write_inventory(
        &mut self,
        at: Timestamp,
        provider: &ProviderUuid,
        class: &ResourceClassName,
        inventory: &Inventory,
    ) -> ApplyResult {
        self.put_inventory(at, provider, class, inventory);
        self.bump(at, provider);
        self.written(at, provider)
    }

    pub(super) fn set_inventories(
        &mut self,
        at: Timestamp,
        provider: &ProviderUuid,
        inventories: &BTreeMap<Given<ResourceClassName>, Inventory>,
    ) -> Result<(), Refusal> {
        let mut wanted = BTreeMap::new();
        for (class, inventory) in inventories {
            wanted.insert(self.named_class(class)?, *inventory);
        }
        let old = self.providers[provider].inventories.keys().cloned();
        let gone: Vec<_> = old.filter(|class| !wanted.contains_key(class)).collect();
        let mut in_use: Vec<_> = gone
            .iter()
            .filter(|class| self.used(provider, class) > 0)
            .cloned()
            .collect();
        in_use.sort_by_key(|class| self.classes[class].order);
        refuse_if(!in_use.is_empty(), || {
            Refusal::InventoryInUse(*provider, in_use)
        })?;
        for class in gone {
            self.provider_mut(provider).inventories.remove(&class);
        }
        for (class, inventory) in &wanted {
            self.put_inventory(at, provider, class, inventory);
        }
        self.bump(at, provider);
        Ok(())
    }

    /// `GET …/inventories`, in the order of the classes' creation.
    pub fn inventories(
        &self,
        uuid: &ProviderUuid,
    ) -> Option<(Generation, Vec<(ResourceClassName, InventoryRow)>)> {
        let provider = self.providers.get(uuid)?;
        let rows = provider
            .inventories
            .iter()
            .map(|(name, row)| (name, row.clone()));
        Some((provider.generation, self.in_order(rows)))
    }

    /// `GET …/usages` of a provider.
    pub fn provider_usages(
        &self,
        uuid: &ProviderUuid,
    ) -> Option<(Generation, BTreeMap<ResourceClassName, u64>)> {
        let provider = self.providers.get(uuid)?;
        let usage = |class: &ResourceClassName| (class.clone(), self.used(uuid, class));
        let usages = provider.inventories.keys().map(usage);
        Some((provider.generation, usages.collect()))
    }
}

pub(super) fn capacity(
    provider: &ProviderUuid,
    class: &Given<ResourceClassName>,
    inventory: &Inventory,
    rule: CapacityRule,
) -> Result<(), Refusal> {
    let truncated = exact_capacity(inventory).trunc();
    let (good, may_reserve_all) = match rule {
        CapacityRule::Positive => (truncated > 0.0, false),
        CapacityRule::NotNegative => (truncated >= 0.0, true),
    };
    refuse_if(!good, || Refusal::InventoryCapacity {
        provider: *provider,
        resource_class: class.clone(),
        may_reserve_all,
    })
}

pub(super) fn exact_capacity(inventory: &Inventory) -> f64 {
    (f64::from(inventory.total) - f64::from(inventory.reserved)) * inventory.allocation_ratio
}

pub(super) fn permits(inventory: &Inventory, amount: u64) -> bool {
    (u64::from(inventory.min_unit)..=u64::from(inventory.max_unit)).contains(&amount)
        && amount.is_multiple_of(u64::from(inventory.step_size))
}
