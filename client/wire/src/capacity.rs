//! Sums over all providers: `GET /placementd/v1/capacity`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::number::Capacity;

/// What sums are computed by, besides the class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CapacityBy {
    /// Nothing else.
    #[default]
    Class,
    /// The aggregates of a provider or of its root.
    Aggregate,
    /// The provider's own traits.
    Trait,
}

/// The answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CapacityReport<'a> {
    /// As asked.
    pub by: CapacityBy,
    /// Sorted by class, then by aggregate or trait.
    pub capacity: Vec<ClassCapacity<'a>>,
}

/// Sums over the inventories of one class, in units of the class: of all providers, of the members
/// of one aggregate, or of the providers with one trait.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassCapacity<'a> {
    /// The resource class.
    pub class: Cow<'a, str>,
    /// With [`CapacityBy::Aggregate`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Cow<'a, str>>,
    /// With [`CapacityBy::Trait`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#trait: Option<Cow<'a, str>>,
    /// Providers that have an inventory.
    pub providers: u64,
    /// Units that exist.
    pub total: u64,
    /// Units that are kept back.
    pub reserved: u64,
    /// Units with overcommitment.
    pub capacity: Capacity,
    /// Allocated units.
    pub used: u64,
    /// Units left of the capacities; a provider above its own capacity takes none from others.
    pub free: u64,
    /// The most that one provider can give to one request.
    pub largest_free: u64,
    /// Providers by the units they have left: none, then 1, then 2 or 3, then 4 to 7, and so on.
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    pub free_ranges: Cow<'a, [u64]>,
}
