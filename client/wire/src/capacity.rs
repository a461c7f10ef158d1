//! Sums over all providers: `GET /placementd/v1/capacity`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::number::Capacity;
use crate::trees::NamedProvider;

/// Grouping of sums in addition to the resource class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CapacityBy {
    /// Group by class only.
    #[default]
    Class,
    /// Group by aggregate of the provider or its root.
    Aggregate,
    /// Group by trait of the provider itself.
    Trait,
    /// Each provider by itself.
    Provider,
    /// One group per tree of providers.
    Tree,
}

/// Response of `GET /placementd/v1/capacity`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CapacityReport<'a> {
    /// Grouping of the request.
    pub by: CapacityBy,
    /// Sorted by class, then by aggregate, trait or UUID of the provider.
    pub capacity: Vec<ClassCapacity<'a>>,
}

/// Sums over the inventories of one class, in units of the class: of all providers, of the members
/// of one aggregate, of the providers with one trait, of one provider or of one tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassCapacity<'a> {
    /// Name of the resource class.
    pub class: Cow<'a, str>,
    /// UUID of the aggregate, with [`CapacityBy::Aggregate`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Cow<'a, str>>,
    /// Name of the trait, with [`CapacityBy::Trait`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#trait: Option<Cow<'a, str>>,
    /// The provider, with [`CapacityBy::Provider`]; the root, with [`CapacityBy::Tree`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<NamedProvider<'a>>,
    /// Number of providers with an inventory.
    pub providers: u64,
    /// Number of existing units.
    pub total: u64,
    /// Number of reserved units.
    pub reserved: u64,
    /// Number of units including overcommitment.
    pub capacity: Capacity,
    /// Number of allocated units.
    pub used: u64,
    /// Free units; a provider used above its capacity counts as 0.
    pub free: u64,
    /// Largest amount that one request can get from one provider.
    pub largest_free: u64,
    /// Number of providers by free units: 0, 1, 2 to 3, 4 to 7, and so on.
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    pub free_ranges: Cow<'a, [u64]>,
}
