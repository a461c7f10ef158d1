//! A provider tree as one immutable value, in a layout for the candidate search.
//!
//! A write clones the tree that it changes, and the new state contains the clone. Other trees are
//! shared between states. A running search continues to use the trees of its state.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::change::{InventoryRow, ProviderId, ProviderRow, ResourceClassId, TraitId};
use crate::mutant;
use crate::types::{AggregateUuid, Generation, Inventory, ProviderName, ProviderUuid, Timestamp};

/// The place of a provider: its tree, and its index in [`Tree::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodePlace {
    /// The number of the tree.
    pub tree: TreeNumber,
    /// The index in [`Tree::nodes`].
    pub node: u32,
}

/// The number of a tree: the id of its root, so that all nodes of the cluster assign the same
/// numbers, whether their state comes from the log or a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeNumber(pub u32);

/// A tree of providers, starting with the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The providers in preorder: a node's descendants follow it directly, siblings in the order of
    /// their ids. Never empty. Unchanged nodes are shared with earlier values of the tree, so that
    /// a write to one of a thousand children does not copy the others.
    pub nodes: Vec<Arc<Node>>,
}

/// A provider with all data that the search needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The dense id of the provider.
    pub id: ProviderId,
    /// The UUID of the provider.
    pub uuid: ProviderUuid,
    /// The name, unique within the partition.
    pub name: ProviderName,
    /// Index of the parent in [`Tree::nodes`]; `None` for the root.
    pub parent: Option<u32>,
    /// Index after the last descendant: `index..subtree_end` is the node with its descendants.
    pub subtree_end: u32,
    /// The generation, for optimistic concurrency control.
    pub generation: Generation,
    /// Time of the creation.
    pub created_at: Timestamp,
    /// Time of the last update.
    pub updated_at: Timestamp,
    /// The inventories, sorted by class.
    pub inventories: Vec<Stock>,
    /// The traits of the provider itself.
    pub traits: Arc<BTreeSet<TraitId>>,
    /// The aggregates that the provider is a member of.
    pub aggregates: Arc<BTreeSet<AggregateUuid>>,
}

/// An inventory with its usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stock {
    /// The class of the inventory.
    pub class: ResourceClassId,
    /// The inventory record as written.
    pub inventory: Inventory,
    /// The sum of all allocations, in units of the class.
    pub used: u64,
    /// Time of the last write to the record.
    pub updated_at: Timestamp,
}

impl TreeNumber {
    /// The id of the tree's root.
    pub fn root(self) -> ProviderId {
        ProviderId(self.0)
    }

    /// The place of the node with this index.
    pub(crate) fn node(self, node: u32) -> NodePlace {
        NodePlace { tree: self, node }
    }
}

impl Tree {
    /// Makes a tree of one provider.
    pub(crate) fn single(id: ProviderId, row: &ProviderRow) -> Self {
        Self {
            nodes: vec![Arc::new(Node::new(id, row))],
        }
    }

    /// Makes a tree of nodes in preorder with known parents, and computes the subtree ends.
    pub(crate) fn from_preorder(mut nodes: Vec<Node>) -> Self {
        for index in (0..nodes.len()).rev() {
            let end = nodes[index].subtree_end.max(index as u32 + 1);
            nodes[index].subtree_end = end;
            if let Some(parent) = nodes[index].parent {
                let parent = &mut nodes[parent as usize];
                parent.subtree_end = parent.subtree_end.max(end);
            }
        }
        Self {
            nodes: nodes.into_iter().map(Arc::new).collect(),
        }
    }

    /// The root provider of the tree.
    pub fn root(&self) -> &Node {
        &self.nodes[0]
    }

    /// The parent of a node.
    pub fn parent(&self, index: u32) -> Option<&Node> {
        let parent = self.nodes[index as usize].parent?;
        Some(&self.nodes[parent as usize])
    }

    /// The row of a node, as stored on disk.
    pub(crate) fn row(&self, index: u32) -> ProviderRow {
        let node = &self.nodes[index as usize];
        ProviderRow {
            uuid: node.uuid,
            name: node.name.clone(),
            generation: node.generation,
            parent: self.parent(index).map(|parent| parent.id),
            created_at: node.created_at,
            updated_at: node.updated_at,
        }
    }

    /// Attaches a whole tree below `parent`, among its siblings in the order of ids. Returns the
    /// index of its root; the indexes of all nodes after the attached tree have changed.
    pub(crate) fn attach(&mut self, parent: u32, branch: Tree) -> u32 {
        let at = self.place_for(parent, branch.root().id);
        let len = branch.nodes.len() as u32;
        let mut above = Some(parent).filter(|_| !mutant!("child-uncounted"));
        while let Some(index) = above {
            let node = Arc::make_mut(&mut self.nodes[index as usize]);
            node.subtree_end += len;
            above = node.parent;
        }
        for node in &mut self.nodes[at as usize..] {
            let node = Arc::make_mut(node);
            node.subtree_end += len;
            node.parent = node.parent.map(|p| if p >= at { p + len } else { p });
        }
        let mut branch = branch.nodes;
        for node in &mut branch {
            let node = Arc::make_mut(node);
            node.subtree_end += at;
            node.parent = Some(node.parent.map_or(parent, |p| p + at));
        }
        self.nodes.splice(at as usize..at as usize, branch);
        at
    }

    /// Detaches a node with its descendants, as a separate tree. `index` must not be the root. The
    /// indexes of all nodes after it change.
    pub(crate) fn detach(&mut self, index: u32) -> Tree {
        let end = self.nodes[index as usize].subtree_end;
        let len = end - index;
        let mut above = self.nodes[index as usize].parent;
        while let Some(index) = above {
            let node = Arc::make_mut(&mut self.nodes[index as usize]);
            node.subtree_end -= len;
            above = node.parent;
        }
        let mut branch: Vec<_> = self.nodes.drain(index as usize..end as usize).collect();
        for node in &mut self.nodes[index as usize..] {
            let node = Arc::make_mut(node);
            node.subtree_end -= len;
            node.parent = node.parent.map(|p| if p >= end { p - len } else { p });
        }
        for (position, node) in (0_u32..).zip(&mut branch) {
            let node = Arc::make_mut(node);
            node.subtree_end -= index;
            node.parent = node.parent.filter(|_| position > 0).map(|p| p - index);
        }
        Tree { nodes: branch }
    }

    /// The position of a new child with this id among the children of `parent`.
    fn place_for(&self, parent: u32, id: ProviderId) -> u32 {
        let end = self.nodes[parent as usize].subtree_end;
        // Most children are attached in the order of their ids.
        let mut last = end - 1;
        while let Some(above) = self.nodes[last as usize]
            .parent
            .filter(|above| *above > parent)
        {
            last = above;
        }
        if self.nodes[last as usize].id < id {
            return end;
        }
        let mut child = parent + 1;
        while child < end && self.nodes[child as usize].id < id {
            child = self.nodes[child as usize].subtree_end;
        }
        child
    }
}

impl Node {
    pub(crate) fn new(id: ProviderId, row: &ProviderRow) -> Self {
        Self {
            id,
            uuid: row.uuid,
            name: row.name.clone(),
            parent: None,
            subtree_end: 1,
            generation: row.generation,
            created_at: row.created_at,
            updated_at: row.updated_at,
            inventories: Vec::new(),
            traits: Arc::default(),
            aggregates: Arc::default(),
        }
    }

    /// The inventory of a class, if the provider has one.
    pub fn stock(&self, class: ResourceClassId) -> Option<&Stock> {
        let at = Stock::position(&self.inventories, class).ok()?;
        Some(&self.inventories[at])
    }

    /// Whether the provider is a member of at least one aggregate of each set.
    pub fn is_member(&self, member_of: &[BTreeSet<AggregateUuid>]) -> bool {
        let mut sets = member_of.iter();
        sets.all(|any| !any.is_disjoint(&self.aggregates))
    }

    /// Whether anything is allocated from this provider.
    pub fn in_use(&self) -> bool {
        self.inventories.iter().any(|stock| stock.used > 0)
    }

    pub(crate) fn stock_mut(&mut self, class: ResourceClassId) -> Option<&mut Stock> {
        let at = Stock::position(&self.inventories, class).ok()?;
        Some(&mut self.inventories[at])
    }
}

impl Stock {
    pub(crate) fn new(class: ResourceClassId, row: &InventoryRow, used: u64) -> Self {
        Self {
            class,
            inventory: row.inventory,
            used,
            updated_at: row.updated_at,
        }
    }

    /// The row of the inventory, as stored on disk.
    pub(crate) fn row(&self) -> InventoryRow {
        InventoryRow {
            inventory: self.inventory,
            updated_at: self.updated_at,
        }
    }

    /// The position of a class among inventories sorted by class, or its insertion point.
    pub(crate) fn position(stocks: &[Self], class: ResourceClassId) -> Result<usize, usize> {
        stocks.binary_search_by_key(&class, |stock| stock.class)
    }

    /// Whether another allocation of this amount satisfies units and capacity.
    pub fn has_room_for(&self, amount: u64) -> bool {
        self.inventory.permits_amount(amount)
            && self.used.saturating_add(amount) as f64 <= self.inventory.capacity_exact()
    }
}
