//! A provider's inventories.

use crate::state::State;
use crate::state::change::InventoryRow;
use crate::state::tree::Stock;
use crate::types::{Generation, ProviderUuid, ResourceClassName};

/// A provider's inventories, in the order of the classes' creation, with the provider's generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderInventories {
    /// The provider's generation.
    pub generation: Generation,
    /// The records.
    pub inventories: Vec<(ResourceClassName, InventoryRow)>,
}

impl State {
    /// The inventories of a provider, or `None` if there is no such provider.
    pub fn inventories(&self, provider: &ProviderUuid) -> Option<ProviderInventories> {
        let node = self.node(self.place(provider)?);
        let record = |stock: &Stock| {
            let name = self.resource_class_name(stock.class).clone();
            (name, stock.row())
        };
        Some(ProviderInventories {
            generation: node.generation,
            inventories: node.inventories.iter().map(record).collect(),
        })
    }
}
