//! Questions over a [`crate::State`], one file per noun. None of them blocks a writer.

pub mod aggregates;
pub mod allocations;
pub mod candidates;
pub mod inventories;
pub mod resource_classes;
pub mod resource_providers;
pub mod traits;
mod tree_filter;
pub mod usages;
