//! The typed methods, one file per noun of the API.

pub(crate) mod aggregates;
pub(crate) mod allocation_candidates;
pub(crate) mod allocations;
pub(crate) mod claims;
pub(crate) mod inventories;
pub(crate) mod resource_classes;
pub(crate) mod resource_providers;
pub(crate) mod traits;
pub(crate) mod usages;
