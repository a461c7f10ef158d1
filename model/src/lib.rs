//! The rules of placement, and nothing else.
//!
//! This crate is pure: no I/O, no async, no clock, no randomness, no configuration.
//! Nondeterministic values (time, new UUIDs) arrive inside a [`Stamped`] command. The same commands
//! in the same order give the same [`State`] on every node and in every replay.
//!
//! * [`command`]: the commands of the model, with checked syntax.
//! * [`cluster`]: the content of a cluster: a [`State`] for each of its partitions.
//! * [`mod@apply`]: `(&State, &Stamped) -> (Outcome, Changes)`, one file per noun.
//! * [`ledger`]: the changes of a command, for watchers and for undo.
//! * [`level`]: the features that all nodes of a cluster support, so that different versions apply
//!   commands with the same result.
//! * [`mod@mutant`]: bugs that simulations inject; release builds do not contain them.
//! * [`outcome`]: the replies and the closed list of refusals.
//! * [`state`]: one table per noun; every change passes through [`State::commit`].
//! * [`mod@similar`]: the names that a misspelled name probably means.
//! * [`standard`]: the resource classes and traits that every cloud shares.
//! * [`query`]: queries over a state, including the allocation-candidate search.

pub mod apply;
pub mod cluster;
pub mod command;
pub mod ledger;
pub mod level;
pub mod mutant;
pub mod outcome;
pub mod query;
pub mod standard;
pub mod state;
pub mod types;

pub use apply::apply;
pub use cluster::Cluster;
pub use command::{Command, Stamped};
pub use ledger::LedgerEntry;
pub use level::Level;
pub use outcome::{Outcome, Refusal, Reply};
pub use placement_similar as similar;
pub use state::State;
pub use state::change::{Change, Changes};
