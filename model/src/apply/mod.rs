//! One command, one pure function, one file per verb.
//!
//! Each looks at the state in the order in which upstream does, as of several reasons to refuse
//! the client hears of the first.

mod claims;
mod clear_provider_traits;
mod consumers;
mod create_inventory;
mod create_provider;
mod create_resource_class;
mod create_trait;
mod delete_allocations;
mod delete_inventories;
mod delete_inventory;
mod delete_provider;
mod delete_resource_class;
mod delete_trait;
mod ensure_resource_class;
mod inventories;
mod provider;
mod remember;
mod rename_resource_class;
mod replace_inventories;
mod reshape;
mod set_allocations;
mod set_provider_aggregates;
mod set_provider_traits;
mod sync_standards;
mod update_inventory;
mod update_provider;

use crate::command::{Command, Stamped};
use crate::outcome::{Outcome, Refusal, Reply};
use crate::state::change::Changes;
use crate::state::{Seen, State};
use crate::types::Timestamp;

/// Decides what `stamped` does to `state`: the answer, and the rows that change.
///
/// Pure and total: the same arguments give the same result on every node, and no command can make
/// it panic. The state is changed only by [`State::commit`] with the returned changes. A request
/// id seen before gives the outcome of the first time and no changes.
pub fn apply(state: &State, stamped: &Stamped) -> (Outcome, Changes) {
    let Some(id) = &stamped.request else {
        return decide(state, stamped.at, &stamped.command);
    };
    match state.sessions().seen(id) {
        Seen::Before(outcome) => (outcome.as_ref().clone(), Changes::new()),
        Seen::LongAgo => (Outcome::AnsweredBefore, Changes::new()),
        Seen::Never => {
            let (outcome, mut changes) = decide(state, stamped.at, &stamped.command);
            remember::remember(state, id, &outcome, &mut changes);
            (outcome, changes)
        }
    }
}

/// What a command comes to: a reply with the rows that change, or a refusal.
type Decision = Result<(Reply, Changes), Box<Refused>>;

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
        Command::SyncStandards {
            resource_classes,
            traits,
        } => sync_standards::sync_standards(state, at, resource_classes, traits),
        Command::CreateProvider { uuid, name, parent } => {
            create_provider::create_provider(state, at, *uuid, name, parent.as_ref())
        }
        Command::UpdateProvider {
            uuid,
            name,
            parent,
            may_reparent,
        } => update_provider::update_provider(state, at, uuid, name, parent, *may_reparent),
        Command::DeleteProvider { uuid } => delete_provider::delete_provider(state, uuid),
        Command::ReplaceInventories {
            provider,
            generation,
            inventories,
            capacity_rule,
        } => replace_inventories::replace_inventories(
            state,
            at,
            provider,
            *generation,
            inventories,
            *capacity_rule,
        ),
        Command::CreateInventory {
            provider,
            resource_class,
            inventory,
            capacity_rule,
        } => create_inventory::create_inventory(
            state,
            at,
            provider,
            resource_class,
            *inventory,
            *capacity_rule,
        ),
        Command::UpdateInventory {
            provider,
            generation,
            resource_class,
            inventory,
            capacity_rule,
        } => update_inventory::update_inventory(
            state,
            at,
            (provider, *generation),
            resource_class,
            *inventory,
            *capacity_rule,
        ),
        Command::DeleteInventory {
            provider,
            resource_class,
        } => delete_inventory::delete_inventory(state, at, provider, resource_class),
        Command::DeleteInventories { provider } => {
            delete_inventories::delete_inventories(state, at, provider)
        }
        Command::SetProviderTraits {
            provider,
            generation,
            traits,
        } => set_provider_traits::set_provider_traits(state, at, provider, *generation, traits),
        Command::ClearProviderTraits { provider } => {
            clear_provider_traits::clear_provider_traits(state, at, provider)
        }
        Command::SetProviderAggregates {
            provider,
            generation,
            aggregates,
        } => set_provider_aggregates::set_provider_aggregates(
            state,
            at,
            provider,
            *generation,
            aggregates,
        ),
        Command::CreateTrait { name } => create_trait::create_trait(state, at, name),
        Command::DeleteTrait { name } => delete_trait::delete_trait(state, name),
        Command::CreateResourceClass { name } => {
            create_resource_class::create_resource_class(state, at, name)
        }
        Command::EnsureResourceClass { name } => {
            ensure_resource_class::ensure_resource_class(state, at, name)
        }
        Command::RenameResourceClass { name, new_name } => {
            rename_resource_class::rename_resource_class(state, at, name, new_name)
        }
        Command::DeleteResourceClass { name } => {
            delete_resource_class::delete_resource_class(state, name)
        }
        Command::SetAllocations { consumers } => {
            set_allocations::set_allocations(state, at, consumers)
        }
        Command::DeleteAllocations { consumer } => {
            delete_allocations::delete_allocations(state, consumer)
        }
        Command::Reshape {
            inventories,
            allocations,
        } => reshape::reshape(state, at, inventories, allocations),
    }
}
