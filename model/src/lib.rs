//! The rules of placement, and nothing else.
//!
//! This crate is pure: no I/O, no async, no clock, no randomness, no configuration. Whatever is
//! uncertain (time, fresh UUIDs) arrives inside a [`Stamped`] command. The same commands in the
//! same order give the same [`State`] on every node and in every replay.
//!
//! * [`command`]: what can be asked of the model, already checked for form.
//! * [`cluster`]: all that a cluster holds: a [`State`] for each of its partitions.
//! * [`mod@apply`]: `(&State, &Stamped) -> (Outcome, Changes)`, a file per noun.
//! * [`ledger`]: what a command has changed, for watchers, and to undo it.
//! * [`level`]: what all nodes of a cluster understand, so that different versions decide alike.
//! * [`mod@mutant`]: bugs that simulations inject, and that a release does not have.
//! * [`outcome`]: replies, and the closed list of refusals.
//! * [`state`]: a table per noun; every change of it passes through [`State::commit`].
//! * [`standard`]: the resource classes and traits that every cloud shares.
//! * [`query`]: questions over a state, among them the allocation-candidate search.

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
pub use state::State;
pub use state::change::{Change, Changes};
