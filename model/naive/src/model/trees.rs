//! Whole provider trees for operators.

use placement_model::query::trees::{ShownInventory, ShownProvider, ShownTree};
use placement_model::state::change::InventoryRow;
use placement_model::types::{ProviderUuid, ResourceClassName};

use super::Naive;

impl Naive {
    /// `GET /placementd/v1/trees/{uuid}`, the whole tree.
    pub fn tree_with(&self, uuid: &ProviderUuid) -> Option<ShownTree> {
        self.providers.get(uuid)?;
        let root = self.root(uuid);
        let mut providers = Vec::new();
        self.show_with_descendants(&root, &mut providers);
        Some(ShownTree { root, providers })
    }

    fn show_with_descendants(&self, uuid: &ProviderUuid, shown: &mut Vec<ShownProvider>) {
        let provider = &self.providers[uuid];
        let inventory = |(class, row): (&ResourceClassName, &InventoryRow)| {
            let inventory = ShownInventory {
                inventory: row.inventory,
                capacity: row.inventory.capacity(),
                used: self.used(uuid, class),
            };
            (class.clone(), inventory)
        };
        shown.push(ShownProvider {
            uuid: *uuid,
            name: provider.name.clone(),
            parent: provider.parent,
            generation: provider.generation,
            inventories: provider.inventories.iter().map(inventory).collect(),
            traits: provider.traits.clone(),
            aggregates: provider.aggregates.clone(),
            holders: self.provider_holdings(uuid).unwrap().1.len(),
        });
        let mut children: Vec<_> = self
            .providers
            .iter()
            .filter(|(_, it)| it.parent == Some(*uuid))
            .collect();
        children.sort_by_key(|(_, child)| child.order);
        for (child, _) in children {
            self.show_with_descendants(child, shown);
        }
    }
}
