//! `DELETE /resource_providers/{uuid}/inventories/{class}`

use super::{Decide, Decision, inventories, provider};
use crate::command::DeleteInventory;
use crate::outcome::Refusal;
use crate::state::State;
use crate::state::change::Change;
use crate::types::Timestamp;

/// Removes one inventory of which nothing is taken.
impl Decide for DeleteInventory {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = provider::find(state, &self.provider)?;
        let class = inventories::class_id(state, &self.resource_class)?;
        let (provider, name) = (self.provider, state.resource_class_name(class).clone());
        match found.node.stock(class) {
            None => Err(Refusal::InventoryNotFound {
                provider,
                resource_class: name,
            }
            .into()),
            Some(stock) if stock.used > 0 => Err(Refusal::InventoryInUse {
                provider,
                resource_classes: vec![name],
            }
            .into()),
            Some(_) => {
                let changes = vec![
                    Change::DeleteInventory(found.node.id, class),
                    found.bump(at),
                ];
                Ok((found.written(at), changes))
            }
        }
    }
}
