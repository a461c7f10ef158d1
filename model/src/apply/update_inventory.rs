//! `PUT /resource_providers/{uuid}/inventories/{class}`

use super::{Decide, Decision, inventories, provider};
use crate::command::UpdateInventory;
use crate::outcome::Refusal;
use crate::state::State;
use crate::types::Timestamp;

/// Replaces one inventory. It may shrink below what is taken of it.
impl Decide for UpdateInventory {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = provider::find(state, &self.provider)?;
        found.check_generation(self.generation)?;
        let inventory = [(&self.resource_class, &self.inventory)];
        inventories::check_capacity(&found, inventory, self.capacity_rule)?;
        let class = inventories::class_id(state, &self.resource_class)?;
        if found.node.stock(class).is_none() {
            return Err(Refusal::InventoryNotFound {
                provider: self.provider,
                resource_class: state.resource_class_name(class).clone(),
            }
            .into());
        }
        Ok(inventories::put_one(&found, class, self.inventory, at))
    }
}
