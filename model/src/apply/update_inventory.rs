//! `PUT /resource_providers/{uuid}/inventories/{class}`

use super::{Decision, inventories, provider};
use crate::command::CapacityRule;
use crate::outcome::Refusal;
use crate::state::State;
use crate::types::{Generation, Inventory, ProviderUuid, ResourceClassName, Timestamp};

/// Replaces one inventory. It may shrink below what is taken of it.
pub(super) fn update_inventory(
    state: &State,
    at: Timestamp,
    (provider, generation): (&ProviderUuid, Generation),
    resource_class: &ResourceClassName,
    inventory: Inventory,
    rule: CapacityRule,
) -> Decision {
    let found = provider::find(state, provider)?;
    found.check_generation(generation)?;
    inventories::check_capacity(&found, [(resource_class, &inventory)], rule)?;
    let class = inventories::class_id(state, resource_class)?;
    if found.node.stock(class).is_none() {
        let (provider, resource_class) = (*provider, resource_class.clone());
        return Err(Refusal::InventoryNotFound {
            provider,
            resource_class,
        }
        .into());
    }
    Ok(inventories::put_one(&found, class, inventory, at))
}
