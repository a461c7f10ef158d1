//! One command, one file: a struct that decides for itself (`Decide`), as a pure function.
//!
//! Each looks at the state in the order in which upstream does, as of several reasons to refuse
//! the client hears of the first.

mod claims;
mod consumers;
mod create_inventory;
mod create_partition;
mod create_provider;
mod create_resource_class;
mod delete_allocations;
mod delete_inventories;
mod delete_inventory;
mod delete_partition;
mod delete_provider;
mod delete_provider_traits;
mod delete_resource_class;
mod delete_trait;
mod ensure_resource_class;
mod ensure_trait;
mod inventories;
mod issue_join_token;
mod names;
mod partitions;
mod provider;
mod raise_level;
mod redeem_join_token;
#[cfg(feature = "rehearsal")]
mod rehearse;
mod remember;
mod rename_resource_class;
mod replace_allocations;
mod replace_inventories;
mod replace_provider_aggregates;
mod replace_provider_traits;
mod reshape;
mod retire_node;
mod revoke_join_token;
mod route_partition;
mod set_replacement;
mod sync_standards;
mod update_inventory;
mod update_provider;

use crate::command::{Command, Stamped};
use crate::outcome::{Outcome, Refusal, Reply};
use crate::state::change::Changes;
use crate::state::{Seen, State};
use crate::types::Timestamp;

/// Decides what `stamped` does to the default partition, as if there were no other: the answer, and the
/// rows that change. [`Cluster::apply`](crate::Cluster::apply) decides for all.
///
/// Pure and total: the same arguments give the same result on every node, and no command can make
/// it panic. The state is changed only by [`State::commit`] with the returned changes. A request
/// id seen before gives the outcome of the first time and no changes.
pub fn apply(state: &State, stamped: &Stamped) -> (Outcome, Changes) {
    if let Some(outcome) = answered(state, stamped) {
        return (outcome, Changes::new());
    }
    let (outcome, mut changes) = decide(state, stamped.at, &stamped.command);
    remember(state, stamped, &outcome, &mut changes);
    (outcome, changes)
}

/// What a command was answered that has been carried out before.
fn answered(state: &State, stamped: &Stamped) -> Option<Outcome> {
    match state.sessions().seen(stamped.request.as_ref()?) {
        Seen::Before(outcome) => Some(outcome.as_ref().clone()),
        Seen::LongAgo => Some(Outcome::AnsweredBefore),
        Seen::Never => None,
    }
}

/// Adds the rows by which a retry of the command is recognised.
fn remember(state: &State, stamped: &Stamped, outcome: &Outcome, changes: &mut Changes) {
    if let Some(id) = &stamped.request
        && !retires(&stamped.command, id.origin)
    {
        remember::remember(state, id, outcome, changes);
    }
}

/// Whether a node's number ends with the command: nothing is remembered under it any more.
fn retires(command: &Command, origin: u64) -> bool {
    matches!(command, Command::RetireNode(retired) if retired.node == origin)
}

/// What a command comes to: a reply with the rows that change, or a refusal.
type Decision = Result<(Reply, Changes), Box<Refused>>;

/// A command, which decides what it comes to. Pure and total, as [`apply`] is.
trait Decide {
    fn decide(&self, state: &State, at: Timestamp) -> Decision;
}

/// A refusal with what it changes nevertheless, which is nothing but for the cases that the
/// [`Refusal`] names.
#[derive(Debug)]
struct Refused {
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

fn decide(state: &State, at: Timestamp, command: &Command) -> (Outcome, Changes) {
    match dispatch(state, at, command) {
        Ok((reply, changes)) => (Outcome::Done(reply), changes),
        Err(refused) => (Outcome::Refused(refused.refusal), refused.changes),
    }
}

fn dispatch(state: &State, at: Timestamp, command: &Command) -> Decision {
    match command {
        Command::SyncStandards(command) => command.decide(state, at),
        #[cfg(feature = "rehearsal")]
        Command::CreateProvider(command) if state.level() >= crate::Level::REHEARSED => {
            rehearse::create_provider(command, state, at)
        }
        Command::CreateProvider(command) => command.decide(state, at),
        Command::UpdateProvider(command) => command.decide(state, at),
        Command::DeleteProvider(command) => command.decide(state, at),
        Command::ReplaceInventories(command) => command.decide(state, at),
        Command::CreateInventory(command) => command.decide(state, at),
        Command::UpdateInventory(command) => command.decide(state, at),
        Command::DeleteInventory(command) => command.decide(state, at),
        Command::DeleteInventories(command) => command.decide(state, at),
        Command::ReplaceProviderTraits(command) => command.decide(state, at),
        Command::DeleteProviderTraits(command) => command.decide(state, at),
        Command::ReplaceProviderAggregates(command) => command.decide(state, at),
        Command::EnsureTrait(command) => command.decide(state, at),
        Command::DeleteTrait(command) => command.decide(state, at),
        Command::CreateResourceClass(command) => command.decide(state, at),
        Command::EnsureResourceClass(command) => command.decide(state, at),
        Command::RenameResourceClass(command) => command.decide(state, at),
        Command::DeleteResourceClass(command) => command.decide(state, at),
        Command::ReplaceAllocations(command) => command.decide(state, at),
        Command::DeleteAllocations(command) => command.decide(state, at),
        Command::Reshape(command) => command.decide(state, at),
        Command::RetireNode(command) => command.decide(state, at),
        Command::RaiseLevel(command) => command.decide(state, at),
        Command::IssueJoinToken(command) => command.decide(state, at),
        Command::RevokeJoinToken(command) => command.decide(state, at),
        Command::RedeemJoinToken(command) => command.decide(state, at),
        Command::SetReplacement(command) => command.decide(state, at),
        Command::CreatePartition(command) => command.decide(state, at),
        Command::DeletePartition(command) => command.decide(state, at),
        Command::RoutePartition(command) => command.decide(state, at),
        #[cfg(feature = "rehearsal")]
        Command::Rehearse(command) => command.decide(state, at),
    }
}
