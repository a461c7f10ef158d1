//! `POST /resource_providers/{uuid}/inventories`

use super::{Decide, Decision, inventories, provider};
use crate::command::CreateInventory;
use crate::outcome::Refusal;
use crate::state::State;
use crate::types::Timestamp;

/// Adds one inventory. No generation is asked for.
impl Decide for CreateInventory {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = provider::find(state, &self.provider)?;
        let inventory = [(&self.resource_class, &self.inventory)];
        inventories::check_capacity(&found, inventory, self.capacity_rule)?;
        let class = inventories::class_id(state, &self.resource_class)?;
        if found.node.stock(class).is_some() {
            return Err(Refusal::InventoryExists {
                provider: self.provider,
                resource_class: state.resource_class_name(class).clone(),
            }
            .into());
        }
        Ok(inventories::put_one(&found, class, self.inventory, at))
    }
}
