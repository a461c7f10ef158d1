//! A tree with everything that its providers have.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::state::State;
use crate::state::tree::{Node, Stock, Tree};
use crate::types::{
    AggregateUuid, Capacity, Generation, Inventory, ProviderName, ProviderUuid, ResourceClassName,
    TraitName,
};

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownTree {
    /// The root.
    pub root: ProviderUuid,
    /// In preorder, siblings in the order of their creation.
    pub providers: Vec<ShownProvider>,
}

/// One of its providers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownProvider {
    /// Its UUID.
    pub uuid: ProviderUuid,
    /// Its name.
    pub name: ProviderName,
    /// Its parent; `None` of the root.
    pub parent: Option<ProviderUuid>,
    /// Its generation.
    pub generation: Generation,
    /// What it has.
    pub inventories: BTreeMap<ResourceClassName, ShownInventory>,
    /// Its traits.
    pub traits: BTreeSet<TraitName>,
    /// Its aggregates.
    pub aggregates: BTreeSet<AggregateUuid>,
    /// How many consumers hold something of it.
    pub holders: usize,
}

/// An inventory and what is taken of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownInventory {
    /// The record.
    #[serde(flatten)]
    pub inventory: Inventory,
    /// The capacity that follows from it.
    pub capacity: Capacity,
    /// Allocated units.
    pub used: u64,
}

impl State {
    /// The whole tree that a provider is in; `None` if there is no such provider.
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
