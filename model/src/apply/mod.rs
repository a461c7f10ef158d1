//! Commands, a file per noun: each is a struct that decides for itself (`Decide`), as a pure
//! function.
//!
//! Each looks at the state in the order in which upstream does, as of several reasons to refuse
//! the client gets the first.

mod allocations;
mod claims;
mod consumers;
mod cost;
mod draft;
mod fill;
mod inventories;
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
use crate::state::{Seen, State};
use crate::types::Timestamp;

/// Decides what `stamped` does to the default partition, as if there were no other: the answer, and
/// the rows that change. [`Cluster::apply`](crate::Cluster::apply) decides for all.
///
/// Pure and total: the same arguments give the same result on every node, and no command can make
/// it panic. The state is changed only by [`State::commit`] with the returned changes. A write
/// id seen before gives the outcome of the first time and no changes.
pub fn apply(state: &State, stamped: &Stamped) -> (Outcome, Changes) {
    if let Some(outcome) = answered(state, stamped) {
        return (outcome, Changes::new());
    }
    let (outcome, mut changes) = decide(state, stamped.at, &stamped.command);
    remember::remember(state, stamped, &outcome, &mut changes);
    (outcome, changes)
}

/// What a command was answered that has been carried out before.
fn answered(state: &State, stamped: &Stamped) -> Option<Outcome> {
    match state.sessions.seen(stamped.write_id.as_ref()?) {
        Seen::Before(outcome) => Some(outcome.as_ref().clone()),
        Seen::LongAgo => Some(Outcome::AnsweredBefore),
        Seen::Never => None,
    }
}

/// What a command comes to: a reply with the rows that change, or a refusal.
pub(crate) type Decision = Result<(Reply, Changes), Box<Refused>>;

/// A command, which decides what it comes to. Pure and total, as [`apply`] is.
pub(crate) trait Decide {
    fn decide(&self, state: &State, at: Timestamp) -> Decision;
}

/// A refusal with what it changes nevertheless, which is nothing but for the cases that the
/// [`Refusal`] names.
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

/// Refuses unless the condition holds.
fn ensure(holds: bool, refusal: impl FnOnce() -> Refusal) -> Result<(), Refusal> {
    match holds {
        true => Ok(()),
        false => Err(refusal()),
    }
}

macro_rules! decider {
    ($($(#[$only:meta])* $name:ident,)*) => {
        /// What decides a command.
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
