//! Application of commands, one file per noun. Each command is a struct with a pure function
//! (`Decide`).
//!
//! Commands check the state in the same order as upstream, because the client receives the first of
//! several refusals.

mod allocations;
mod ceilings;
mod choices;
mod claims;
mod consumers;
mod cost;
mod draft;
mod fill;
mod groups;
mod holds;
mod inventories;
mod limits;
mod names;
mod nodes;
mod partitions;
mod providers;
#[cfg(feature = "rehearsal")]
mod rehearse;
mod remember;
mod reshape;
mod resource_classes;
mod traits;

use crate::command::{Command, Stamped, each_command};
use crate::outcome::{Outcome, Refusal, Reply};
use crate::state::change::Changes;
use crate::state::{State, WriteStatus};
use crate::types::Timestamp;

/// Computes the outcome and the changed rows of a command in the default partition.
/// [`Cluster::apply`](crate::Cluster::apply) supports all partitions.
///
/// Pure and total: the same arguments give the same result on every node, and no command causes a
/// panic. Only [`State::commit`] with the returned changes modifies the state. A known write id
/// returns the outcome of the first application and no changes.
pub fn apply(state: &State, stamped: &Stamped) -> (Outcome, Changes) {
    if let Some(outcome) = answered(state, stamped) {
        return (outcome, Changes::new());
    }
    let (outcome, mut changes) = decide(state, stamped.at, &stamped.command);
    remember::remember(state, stamped, &outcome, &mut changes);
    (outcome, changes)
}

/// The outcome of a command that has been applied before.
fn answered(state: &State, stamped: &Stamped) -> Option<Outcome> {
    match state.sessions.seen(stamped.write_id.as_ref()?) {
        WriteStatus::Before(outcome) => Some(outcome.as_ref().clone()),
        WriteStatus::LongAgo => Some(Outcome::AnsweredBefore),
        WriteStatus::Never => None,
    }
}

/// The result of a command: a reply with the changed rows, or a refusal.
pub(crate) type Decision = Result<(Reply, Changes), Box<Refused>>;

/// A command that can be applied. Pure and total, like [`apply`].
pub(crate) trait Decide {
    fn decide(&self, state: &State, at: Timestamp) -> Decision;
}

/// A refusal with its changes, which are empty except where the [`Refusal`] documents otherwise.
#[derive(Debug)]
pub(crate) struct Refused {
    refusal: Refusal,
    changes: Changes,
}

impl From<Refusal> for Box<Refused> {
    fn from(refusal: Refusal) -> Self {
        Box::new(Refused {
            refusal,
            changes: Changes::new(),
        })
    }
}

/// Returns the refusal unless the condition holds.
fn ensure(holds: bool, refusal: impl FnOnce() -> Refusal) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(refusal()) }
}

macro_rules! decider {
    ($($(#[$only:meta])* $name:ident,)*) => {
        /// The implementation of a command.
        fn decider(command: &Command) -> &dyn Decide {
            match command {
                $($(#[$only])* Command::$name(command) => command,)*
            }
        }
    };
}
each_command!(decider);

fn decide(state: &State, at: Timestamp, command: &Command) -> (Outcome, Changes) {
    let decision = match command {
        #[cfg(feature = "rehearsal")]
        Command::CreateProvider(command) if state.level() >= crate::Level::REHEARSED => {
            rehearse::create_provider(command, state, at)
        }
        command => decider(command).decide(state, at),
    };
    match decision {
        Ok((reply, changes)) => (Outcome::Done(reply), changes),
        Err(refused) => (Outcome::Refused(refused.refusal), refused.changes),
    }
}
