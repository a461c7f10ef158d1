//! A provider tree with inventories, traits and aggregates.

use std::collections::{BTreeMap, BTreeSet};

use crate::state::State;
use crate::state::tree::{Node, Stock, Tree};
use crate::types::{
    AggregateUuid, Capacity, Generation, Inventory, ProviderName, ProviderUuid, ResourceClassName,
    TraitName,
};

/// A tree of providers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownTree {
    /// The root of the tree.
    pub root: ProviderUuid,
    /// The providers in preorder; siblings in the order of their creation.
    pub providers: Vec<ShownProvider>,
}

/// A provider of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownProvider {
    /// The UUID of the provider.
    pub uuid: ProviderUuid,
    /// The name, unique among all providers.
    pub name: ProviderName,
    /// The parent provider; `None` for the root.
    pub parent: Option<ProviderUuid>,
    /// The generation, for optimistic concurrency control.
    pub generation: Generation,
    /// The inventories by resource class.
    pub inventories: BTreeMap<ResourceClassName, ShownInventory>,
    /// The traits of this provider alone, without those of its parents.
    pub traits: BTreeSet<TraitName>,
    /// The aggregates that the provider itself is a member of.
    pub aggregates: BTreeSet<AggregateUuid>,
    /// Number of consumers with allocations on this provider.
    pub holders: usize,
}

/// An inventory and its usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownInventory {
    /// The inventory record as written.
    pub inventory: Inventory,
    /// The capacity in units: `(total - reserved) * allocation_ratio`.
    pub capacity: Capacity,
    /// Units allocated to consumers.
    pub used: u64,
}

impl State {
    /// The whole tree of a provider, or `None` if the provider does not exist.
    pub fn tree_with(&self, provider: &ProviderUuid) -> Option<ShownTree> {
        let tree = self.tree(self.place(provider)?.tree)?;
        let nodes = (0..).zip(&tree.nodes);
        Some(ShownTree {
            root: tree.root().uuid,
            providers: nodes.map(|(at, node)| self.shown(tree, at, node)).collect(),
        })
    }

    fn shown(&self, tree: &Tree, at: u32, node: &Node) -> ShownProvider {
        let inventory = |stock: &Stock| {
            let name = self.resource_class_name(stock.class).clone();
            let shown = ShownInventory {
                inventory: stock.inventory,
                capacity: stock.inventory.capacity(),
                used: stock.used,
            };
            (name, shown)
        };
        let traits = node.traits.iter();
        ShownProvider {
            uuid: node.uuid,
            name: node.name.clone(),
            parent: tree.parent(at).map(|parent| parent.uuid),
            generation: node.generation,
            inventories: node.inventories.iter().map(inventory).collect(),
            traits: traits.map(|id| self.trait_name(*id).clone()).collect(),
            aggregates: (*node.aggregates).clone(),
            holders: self.consumers.holders(node.id).count(),
        }
    }
}
