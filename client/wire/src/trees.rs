//! A tree with all details of its providers: `GET /placementd/v1/trees/{uuid}`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::number::Capacity;

/// UUID and name of a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedProvider<'a> {
    /// UUID of the provider.
    pub uuid: Cow<'a, str>,
    /// Name, unique in the partition.
    pub name: Cow<'a, str>,
}

/// Response of `GET /placementd/v1/trees/{uuid}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tree<'a> {
    /// UUID of the root.
    pub root: Cow<'a, str>,
    /// Providers in preorder, siblings in the order of their creation.
    pub providers: Vec<TreeProvider<'a>>,
}

/// One provider of a tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TreeProvider<'a> {
    /// UUID of the provider.
    pub uuid: Cow<'a, str>,
    /// Name, unique in the partition.
    pub name: Cow<'a, str>,
    /// UUID of the parent; `None` for the root.
    pub parent: Option<Cow<'a, str>>,
    /// Increases with each change of its inventories, traits or aggregates.
    pub generation: i64,
    /// Inventories by resource class.
    pub inventories: BTreeMap<Cow<'a, str>, TreeInventory>,
    /// Names of the traits.
    pub traits: Vec<Cow<'a, str>>,
    /// UUIDs of the aggregates.
    pub aggregates: Vec<Cow<'a, str>>,
    /// Number of consumers with allocations on it.
    pub holders: u64,
}

/// An inventory and its usage, in units of its class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TreeInventory {
    /// Number of existing units.
    pub total: u32,
    /// Number of reserved units.
    pub reserved: u32,
    /// Smallest amount of one allocation.
    pub min_unit: u32,
    /// Largest amount of one allocation.
    pub max_unit: u32,
    /// Allocated amounts are multiples of this.
    pub step_size: u32,
    /// Overcommitment: capacity is `(total - reserved) * allocation_ratio`.
    pub allocation_ratio: f64,
    /// Whole units of capacity.
    pub capacity: Capacity,
    /// Number of allocated units.
    pub used: u64,
}
