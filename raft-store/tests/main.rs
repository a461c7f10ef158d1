//! The store, in one binary. What starts processes has a binary of its own: a process that begins
//! holds the locks of the one that starts it for a moment.

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
