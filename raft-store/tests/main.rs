//! Tests of the store in one binary. Tests that start processes have separate binaries: a new
//! process briefly holds the locks of its parent.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod archive;
mod codecs;
mod common;
mod conformance;
mod crashes;
mod durability;
mod forgetting;
mod inline;
mod ledger;
mod log_against_a_list;
mod opening;
mod openraft;
mod partitions;
mod power;
mod recovering;
mod restoring;
mod reused_files;
mod skipping;
mod snapshots;
mod views;
