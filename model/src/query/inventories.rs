//! The inventories of a provider.

use crate::state::State;
use crate::state::change::InventoryRow;
use crate::state::tree::Stock;
use crate::types::{Generation, ProviderUuid, ResourceClassName};

impl State {
    /// The inventories of a provider, in the order of the classes' creation, with the provider's
    /// generation.
    pub fn inventories(
        &self,
        provider: &ProviderUuid,
    ) -> Option<(Generation, Vec<(ResourceClassName, InventoryRow)>)> {
        let record = |stock: &Stock| {
            let name = self.resource_class_name(stock.class).clone();
            (name, stock.row())
        };
        self.read_provider(provider, |node| {
            node.inventories.iter().map(record).collect()
        })
    }
}
