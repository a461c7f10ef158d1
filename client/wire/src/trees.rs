//! A tree with everything that its providers have: `GET /placementd/v1/trees/{uuid}`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::number::Capacity;

/// How operators refer to a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedProvider<'a> {
    /// The UUID.
    pub uuid: Cow<'a, str>,
    /// Unique in the partition.
    pub name: Cow<'a, str>,
}

/// The answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tree<'a> {
    /// UUID of the root.
    pub root: Cow<'a, str>,
    /// In preorder, siblings in the order of their creation.
    pub providers: Vec<TreeProvider<'a>>,
}

/// One provider of a tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TreeProvider<'a> {
    /// The UUID.
    pub uuid: Cow<'a, str>,
    /// Unique in the partition.
    pub name: Cow<'a, str>,
    /// UUID of the parent; `None` for the root.
    pub parent: Option<Cow<'a, str>>,
    /// Rises with each change of what it offers.
    pub generation: i64,
    /// By resource class.
    pub inventories: BTreeMap<Cow<'a, str>, TreeInventory>,
    /// Names.
    pub traits: Vec<Cow<'a, str>>,
    /// UUIDs.
    pub aggregates: Vec<Cow<'a, str>>,
    /// Consumers with allocations on it.
    pub holders: u64,
}

/// An inventory and its usage, in units of its class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TreeInventory {
    /// Units that exist.
    pub total: u32,
    /// Units that are kept back.
    pub reserved: u32,
    /// The least amount of one allocation.
    pub min_unit: u32,
    /// The greatest amount of one allocation.
    pub max_unit: u32,
    /// Amounts are multiples of this.
    pub step_size: u32,
    /// Capacity is `(total - reserved) * allocation_ratio`.
    pub allocation_ratio: f64,
    /// Whole units of the capacity.
    pub capacity: Capacity,
    /// Allocated units.
    pub used: u64,
}
