//! A provider tree as one immutable value, laid out for the candidate search.
//!
//! A write clones the one tree it touches and publishes the clone; everything else is shared, so
//! a search keeps the trees it started with for as long as it takes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::change::{ProviderId, ResourceClassId, TraitId};
use crate::types::{AggregateUuid, Generation, Inventory, ProviderName, ProviderUuid, Timestamp};

/// Which tree: the id of its root, so that every node of the cluster numbers trees alike, however
/// it came by its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeNumber(pub u32);

/// All providers that hang together, the root first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// In preorder: a node's descendants follow it directly, siblings in the order of their ids.
    /// Never empty. Each node is shared with the tree's earlier values unless it changed, so that
    /// a write to one of a thousand children does not copy the others.
    pub nodes: Vec<Arc<Node>>,
}

/// One provider with everything the search asks of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its dense id.
    pub id: ProviderId,
    /// Its UUID.
    pub uuid: ProviderUuid,
    /// Its name.
    pub name: ProviderName,
    /// Index of the parent in [`Tree::nodes`]; `None` for the root.
    pub parent: Option<u32>,
    /// Index behind the last descendant: `index..subtree_end` is the node with all below it.
    pub subtree_end: u32,
    /// Its generation.
    pub generation: Generation,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last updated.
    pub updated_at: Timestamp,
    /// Sorted by class.
    pub inventories: Vec<Stock>,
    /// Its traits.
    pub traits: Arc<BTreeSet<TraitId>>,
    /// Its aggregates.
    pub aggregates: Arc<BTreeSet<AggregateUuid>>,
}

/// One inventory together with what is taken of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stock {
    /// The class.
    pub class: ResourceClassId,
    /// The record.
    pub inventory: Inventory,
    /// The sum of all allocations of it, in units of the class.
    pub used: u64,
    /// When the record was written.
    pub updated_at: Timestamp,
}
