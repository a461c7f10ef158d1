//! `POST /resource_providers/{uuid}/inventories`

use super::{Decision, inventories, provider};
use crate::command::CapacityRule;
use crate::outcome::Refusal;
use crate::state::State;
use crate::types::{Inventory, ProviderUuid, ResourceClassName, Timestamp};

/// Adds one inventory. No generation is asked for.
pub(super) fn create_inventory(
    state: &State,
    at: Timestamp,
    provider: &ProviderUuid,
    resource_class: &ResourceClassName,
    inventory: Inventory,
    rule: CapacityRule,
) -> Decision {
    let found = provider::find(state, provider)?;
    inventories::check_capacity(&found, [(resource_class, &inventory)], rule)?;
    let class = inventories::class_id(state, resource_class)?;
    if found.node.stock(class).is_some() {
        let (provider, resource_class) = (*provider, resource_class.clone());
        return Err(Refusal::InventoryExists {
            provider,
            resource_class,
        }
        .into());
    }
    Ok(inventories::put_one(&found, class, inventory, at))
}
