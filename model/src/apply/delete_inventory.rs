//! `DELETE /resource_providers/{uuid}/inventories/{class}`

use super::{Decision, inventories, provider};
use crate::outcome::Refusal;
use crate::state::State;
use crate::state::change::Change;
use crate::types::{ProviderUuid, ResourceClassName, Timestamp};

/// Removes one inventory of which nothing is taken.
pub(super) fn delete_inventory(
    state: &State,
    at: Timestamp,
    provider: &ProviderUuid,
    resource_class: &ResourceClassName,
) -> Decision {
    let found = provider::find(state, provider)?;
    let class = inventories::class_id(state, resource_class)?;
    let (provider, name) = (*provider, resource_class.clone());
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
