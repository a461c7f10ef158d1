//! The rules of placement, implemented as simply as possible: maps are keyed by names, sums are
//! computed from scratch each time, and every command is tried on a copy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use placement_model::Level;
use placement_model::command::{
    Command, CreatePartition, CreateResourceClass, DeleteAllocations, DeleteInventories,
    DeletePartition, DeleteProvider, DeleteProviderTraits, DeleteResourceClass, DeleteTrait,
    EnsureResourceClass, EnsureTrait, RaiseLevel, RenameResourceClass, ReplaceAllocations, Reshape,
    RetireNode, RoutePartition, Stamped,
};
use placement_model::outcome::{Outcome, Refusal, Reply};
use placement_model::state::change::{InventoryRow, LimitsRow};
use placement_model::types::{
    AggregateUuid, ConsumerTypeName, ConsumerUuid, Generation, Hold, PartitionName, ProjectId,
    ProviderName, ProviderUuid, ResourceClassName, Routes, Timestamp, TraitName, UserId,
};

mod allocations;
mod capacity;
mod claim;
mod consumers;
mod fill;
mod holds;
mod inventories;
mod limits;
mod names;
mod partitions;
mod providers;
mod resource_classes;
mod rows;
mod sample;
mod traits;
mod trees;

use holds::HoldUpdate;

/// A provider with its inventories, traits and aggregates.
#[derive(Debug, Clone)]
pub struct NaiveProvider {
    order: u64,
    name: ProviderName,
    /// The generation, incremented by writes.
    pub generation: Generation,
    /// The parent; `None` for a root.
    pub parent: Option<ProviderUuid>,
    updated: Timestamp,
    /// The inventories by class.
    pub inventories: BTreeMap<ResourceClassName, InventoryRow>,
    traits: BTreeSet<TraitName>,
    aggregates: BTreeSet<AggregateUuid>,
}

/// A consumer, with or without allocations.
#[derive(Debug, Clone)]
pub struct NaiveConsumer {
    /// The generation, incremented by writes.
    pub generation: Generation,
    project: ProjectId,
    user: UserId,
    consumer_type: Option<ConsumerTypeName>,
    updated: Timestamp,
    /// Makes the allocations a hold.
    pub hold: Option<Hold>,
}

#[derive(Debug, Clone)]
struct Named {
    order: u64,
    made: Timestamp,
}

/// The whole state, by name. Large parts that rarely change are shared, since every command makes a
/// copy.
#[derive(Debug, Clone, Default)]
pub struct Naive {
    counter: u64,
    classes: Arc<BTreeMap<ResourceClassName, Named>>,
    traits: Arc<BTreeMap<TraitName, Named>>,
    /// All providers by UUID.
    pub providers: BTreeMap<ProviderUuid, NaiveProvider>,
    /// All consumers, including consumers without allocations that a refused write created.
    pub consumers: BTreeMap<ConsumerUuid, NaiveConsumer>,
    /// The allocated units by consumer, provider and class.
    pub allocations: BTreeMap<(ConsumerUuid, ProviderUuid, ResourceClassName), u64>,
    /// All outcomes, by origin, boot and sequence.
    answered: Arc<BTreeMap<(u64, u64, u64), Outcome>>,
    /// The highest `answered_below` applied for each origin and boot.
    answered_below: BTreeMap<(u64, u64), u64>,
    /// The numbers of removed nodes.
    retired: BTreeSet<u64>,
    /// The feature level of the cluster.
    pub level: Level,
    /// The default partition and all others ever created, by their ids.
    partitions: Vec<NaivePartition>,
    /// The limits of all projects; generation 0 before the first ones.
    limits: Arc<LimitsRow>,
}

/// A partition's name and routes, without its content.
#[derive(Debug, Clone)]
struct NaivePartition {
    name: PartitionName,
    is_there: bool,
    routes: Routes,
    changes: u32,
}

type ApplyResult = Result<Reply, Refusal>;

impl Naive {
    /// Applies a log entry, or returns its earlier outcome.
    pub fn apply(&mut self, stamped: &Stamped) -> Outcome {
        self.once(stamped, |naive| {
            let is_late = stamped.routes != naive.route_changes(stamped.partition);
            if is_late && !stamped.command.is_cluster_wide() {
                Outcome::Refused(Refusal::RoutesChanged(stamped.partition))
            } else {
                naive.run(stamped.at, &stamped.command)
            }
        })
    }

    /// Skips an entry of another partition, and records only its write id.
    pub fn skip(&mut self, stamped: &Stamped) -> Outcome {
        self.once(stamped, |_| Outcome::Done(Reply::Done))
    }

    /// Runs `run`, unless the write may have been applied before: then returns the earlier outcome,
    /// or [`Outcome::AnsweredBefore`] if that is no longer known. An entry without a write id
    /// always runs.
    pub(crate) fn once(
        &mut self,
        stamped: &Stamped,
        run: impl FnOnce(&mut Self) -> Outcome,
    ) -> Outcome {
        let Some(id) = stamped.write_id else {
            return run(self);
        };
        if self.retired.contains(&id.origin) {
            return Outcome::AnsweredBefore;
        }
        let newest = self
            .answered_below
            .range((id.origin, 0)..=(id.origin, u64::MAX))
            .next_back()
            .map(|((_, boot), below)| (*boot, *below));
        let below = match newest {
            Some((boot, _)) if id.boot < boot => return Outcome::AnsweredBefore,
            Some((boot, below)) if id.boot == boot => below,
            _ => 0,
        };
        if id.sequence < id.answered_below || id.sequence < below {
            return Outcome::AnsweredBefore;
        }
        if let Some(outcome) = self.answered.get(&(id.origin, id.boot, id.sequence)) {
            return outcome.clone();
        }
        let outcome = run(self);
        Arc::make_mut(&mut self.answered)
            .insert((id.origin, id.boot, id.sequence), outcome.clone());
        self.answered_below
            .insert((id.origin, id.boot), below.max(id.answered_below));
        outcome
    }

    /// Tries the command on a copy, which replaces the model unless the command is refused.
    pub(crate) fn run(&mut self, at: Timestamp, command: &Command) -> Outcome {
        if let Command::ReplaceAllocations(ReplaceAllocations { consumers }) = command {
            return self.write_within_limits(at, consumers);
        }
        if let Command::Reshape(Reshape {
            inventories,
            allocations,
        }) = command
        {
            let update = HoldUpdate::default();
            return self.write_allocations(at, inventories, allocations, &update);
        }
        let mut copy = self.clone();
        match copy.change(at, command) {
            Ok(reply) => {
                *self = copy;
                Outcome::Done(reply)
            }
            Err(refusal) => Outcome::Refused(refusal),
        }
    }

    fn change(&mut self, at: Timestamp, command: &Command) -> ApplyResult {
        match command {
            Command::SyncStandards(sync) => self.sync_standards(at, sync),
            Command::CreateProvider(create) => self.create_provider(at, create),
            Command::UpdateProvider(update) => self.update_provider(at, update),
            Command::DeleteProvider(DeleteProvider { uuid }) => self.delete_provider(uuid),
            Command::ReplaceInventories(replace) => self.replace_inventories(at, replace),
            Command::CreateInventory(create) => self.create_inventory(at, create),
            Command::UpdateInventory(update) => self.update_inventory(at, update),
            Command::DeleteInventory(delete) => self.delete_inventory(at, delete),
            Command::DeleteInventories(DeleteInventories { provider }) => {
                self.delete_inventories(at, provider)
            }
            Command::ReplaceProviderTraits(replace) => self.replace_traits(at, replace),
            Command::DeleteProviderTraits(DeleteProviderTraits { provider }) => {
                self.delete_traits(at, provider)
            }
            Command::ReplaceProviderAggregates(replace) => self.replace_aggregates(at, replace),
            Command::EnsureTrait(EnsureTrait { name }) => self.ensure_trait(at, name),
            Command::DeleteTrait(DeleteTrait { name }) => self.delete_trait(name),
            Command::CreateResourceClass(CreateResourceClass { name }) => {
                self.create_class(at, name)
            }
            Command::EnsureResourceClass(EnsureResourceClass { name }) => {
                self.ensure_class(at, name)
            }
            Command::RenameResourceClass(RenameResourceClass { name, new_name }) => {
                self.rename(at, name, new_name)
            }
            Command::DeleteResourceClass(DeleteResourceClass { name }) => self.delete_class(name),
            Command::DeleteAllocations(DeleteAllocations { consumer }) => {
                self.delete_allocations(consumer)
            }
            Command::RetireNode(RetireNode { node }) => {
                self.retired.insert(*node);
                Ok(Reply::Done)
            }
            Command::RaiseLevel(RaiseLevel { to }) => {
                self.level = self.level.max(*to);
                Ok(Reply::Done)
            }
            // Joins are invisible to clients, so the naive model ignores them.
            Command::IssueJoinToken(_)
            | Command::RevokeJoinToken(_)
            | Command::RedeemJoinToken(_)
            | Command::SetReplacement(_) => Ok(Reply::Done),
            Command::CreatePartition(CreatePartition { name, routes }) => {
                self.create_partition(name, routes)
            }
            Command::RoutePartition(RoutePartition { name, routes }) => {
                self.route_partition(name, routes)
            }
            Command::DeletePartition(DeletePartition { name, .. }) => self.delete_partition(name),
            Command::FillPartition(fill) => self.fill(fill),
            Command::Claim(claim) => self.claim(at, claim),
            Command::RenewHold(renew) => self.renew_hold(at, renew),
            Command::ExpireHolds(_) => self.expire_holds(at),
            Command::ReplaceLimits(replace) => self.replace_limits(at, replace),
            Command::ReplaceAllocations(_) | Command::Reshape(_) => {
                unreachable!("these commands have separate functions")
            }
        }
    }

    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }
}

fn refuse_if(holds: bool, refusal: impl FnOnce() -> Refusal) -> Result<(), Refusal> {
    if holds { Err(refusal()) } else { Ok(()) }
}
