//! The REST API, noun by noun, over a state in memory.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test or a demonstration, in the real world"
)]

mod access;
mod aggregates;
mod allocation_candidates;
mod allocations;
mod as_of;
mod audit;
mod consistency;
mod content;
mod edge;
mod errors;
mod events;
mod explain;
mod fits;
mod fuzz;
mod history;
mod holds;
mod hostile;
mod inventories;
mod limits;
mod placementd;
mod policy;
mod public_address;
mod questions;
mod refuge;
mod repeated;
mod reshaper;
mod resource_classes;
mod resource_providers;
mod traits;
mod usages;

#[path = "../support/log.rs"]
mod log;
#[path = "../support/memory.rs"]
mod memory;

mod callers;
mod claims;
mod cloud;
