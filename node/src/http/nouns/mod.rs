//! The handlers, a file per noun of the API.

pub(in crate::http) mod aggregates;
pub(in crate::http) mod allocation_candidates;
pub(in crate::http) mod allocations;
pub(in crate::http) mod inventories;
pub(in crate::http) mod reshaper;
pub(in crate::http) mod resource_classes;
pub(in crate::http) mod resource_providers;
pub(in crate::http) mod root;
pub(in crate::http) mod traits;
pub(in crate::http) mod usages;
