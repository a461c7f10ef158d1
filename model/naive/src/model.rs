//! The rules of placement, implemented as plainly as possible: maps keyed by names, sums recounted
//! each time, every command tried on a copy. Slow, and obvious.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use placement_model::Level;
use placement_model::command::{
    CapacityRule, Command, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate,
    CreatePartition, CreateProvider, CreateResourceClass, DeleteAllocations, DeleteInventories,
    DeletePartition, DeleteProvider, DeleteProviderTraits, DeleteResourceClass, DeleteTrait,
    EnsureResourceClass, EnsureTrait, ParentUpdate, ProviderAmounts, RaiseLevel,
    RenameResourceClass, ReplaceAllocations, Reshape, ReshapedInventories, RetireNode,
    RoutePartition, Stamped, UpdateProvider,
};
use placement_model::outcome::{Outcome, Provider, Refusal, Reply};
use placement_model::query::allocations::{Consumer, ConsumerHolding, ProviderHolding};
use placement_model::query::capacity::{CapacityBy, CapacityReport, CapacitySums, ClassCapacity};
use placement_model::query::consumers::{ConsumerFilter, ListedAllocation, ListedConsumer};
use placement_model::query::resource_providers::ProviderFilter;
use placement_model::query::trees::{ShownInventory, ShownProvider, ShownTree};
use placement_model::query::usages::TypeUsage;
use placement_model::query::{NamedProvider, UnknownName};
use placement_model::state::change::InventoryRow;
use placement_model::types::{
    AggregateUuid, ConsumerTypeName, ConsumerUuid, Generation, Given, Inventory, PartitionId,
    PartitionName, ProjectId, ProviderName, ProviderUuid, ResourceClassName, Routes, Timestamp,
    TraitName, UserId,
};

use crate::sample_cloud::{self, SampleCloud, Stock};

mod fill;
mod rows;

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
}

/// A partition's name and routes, without its content.
#[derive(Debug, Clone)]
struct NaivePartition {
    name: PartitionName,
    is_there: bool,
    routes: Routes,
    changes: u32,
}

type Answer = Result<Reply, Refusal>;

impl Naive {
    /// Applies a log entry, or returns its earlier outcome.
    pub fn apply(&mut self, stamped: &Stamped) -> Outcome {
        self.once(stamped, |naive| {
            let is_late = stamped.routes != naive.route_changes(stamped.partition);
            match is_late && !stamped.command.is_of_the_cluster() {
                true => Outcome::Refused(Refusal::RoutesChanged(stamped.partition)),
                false => naive.run(stamped.at, &stamped.command),
            }
        })
    }

    /// Number of changes of a partition's routes.
    pub fn route_changes(&self, partition: PartitionId) -> u32 {
        let found = self.partitions.get(usize::from(partition.0));
        found.map_or(0, |partition| partition.changes)
    }

    /// Whether routes lead to a partition, so that clients can use it.
    pub(crate) fn is_routed_to(&self, partition: PartitionId) -> bool {
        let found = self.partitions.get(usize::from(partition.0));
        partition.is_default() || found.is_some_and(|found| found.routes.iter().next().is_some())
    }

    /// The id of the live partition with this name.
    pub fn partition_id(&self, name: &PartitionName) -> Option<PartitionId> {
        let is_it = |one: &NaivePartition| one.is_there && one.name == *name;
        let id = self.partitions.iter().position(is_it)?;
        u16::try_from(id).ok().map(PartitionId)
    }

    /// Skips an entry of another partition, and records only its write id.
    pub fn pass_by(&mut self, stamped: &Stamped) -> Outcome {
        self.once(stamped, |_| Outcome::Done(Reply::Done))
    }

    /// Runs `run` for a new entry, or returns the earlier outcome.
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
            .next_back();
        let newest = newest.map(|((_, boot), below)| (*boot, *below));
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

    /// Tries the command on a copy, which is kept unless the command is refused.
    pub(crate) fn run(&mut self, at: Timestamp, command: &Command) -> Outcome {
        if let Command::ReplaceAllocations(ReplaceAllocations { consumers }) = command {
            return self.write_allocations(at, &[], consumers);
        }
        if let Command::Reshape(Reshape {
            inventories,
            allocations,
        }) = command
        {
            return self.write_allocations(at, inventories, allocations);
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

    fn partition(&mut self, name: &PartitionName) -> Option<&mut NaivePartition> {
        let mut all = self.partitions.iter_mut();
        all.find(|partition| partition.is_there && partition.name == *name)
    }

    /// Adds the default partition, which always exists.
    fn begin_partitions(&mut self) {
        if self.partitions.is_empty() {
            self.add_partition(PartitionName::default(), Routes::default());
        }
    }

    fn add_partition(&mut self, name: PartitionName, routes: Routes) {
        self.partitions.push(NaivePartition {
            name,
            is_there: true,
            routes,
            changes: 0,
        });
    }

    fn create_partition(&mut self, name: &PartitionName, routes: &Routes) -> Answer {
        self.begin_partitions();
        let is_taken = self.partition(name).is_some();
        refuse_if(is_taken, || Refusal::PartitionExists(name.clone()))?;
        self.check_routes(name, routes)?;
        let id = u16::try_from(self.partitions.len()).expect("tests create few partitions");
        self.add_partition(name.clone(), routes.clone());
        Ok(Reply::Partition(PartitionId(id)))
    }

    /// Deletes the partition's entry. Its content is a model of its own.
    fn delete_partition(&mut self, name: &PartitionName) -> Answer {
        refuse_if(name.is_default(), || Refusal::PartitionDefault)?;
        let partition = self.partition(name);
        let partition = partition.ok_or_else(|| Refusal::PartitionNotFound(name.clone()))?;
        partition.is_there = false;
        partition.routes = Routes::default();
        partition.changes = 0;
        Ok(Reply::Done)
    }

    fn route_partition(&mut self, name: &PartitionName, routes: &Routes) -> Answer {
        self.begin_partitions();
        let Some(partition) = self.partition(name) else {
            return Err(Refusal::PartitionNotFound(name.clone()));
        };
        if partition.routes != *routes {
            self.check_routes(name, routes)?;
            let partition = self.partition(name).expect("the partition exists");
            partition.routes = routes.clone();
            partition.changes += 1;
        }
        Ok(Reply::Done)
    }

    /// Checks that a partition may have these routes, given the routes of the others.
    fn check_routes(&self, name: &PartitionName, routes: &Routes) -> Result<(), Refusal> {
        let has_host = |routes: &Routes| routes.hosts().count() > 0;
        if name.is_default() && routes.iter().count() > routes.hosts().count() {
            return Err(Refusal::DefaultPrefix);
        }
        let mut after: Vec<_> = (self.partitions.iter())
            .filter(|partition| partition.name != *name)
            .map(|partition| (&partition.name, &partition.routes))
            .collect();
        after.push((name, routes));
        let (default, others): (Vec<_>, Vec<_>) =
            after.into_iter().partition(|(name, _)| name.is_default());
        if others.iter().any(|(_, routes)| has_host(routes))
            && !default.iter().any(|(_, routes)| has_host(routes))
        {
            return Err(Refusal::DefaultWithoutHost);
        }
        for route in routes.iter() {
            for other in self.partitions.iter().filter(|other| other.name != *name) {
                if other.routes.iter().any(|one| one.meets(route)) {
                    return Err(Refusal::RouteTaken(route.clone(), other.name.clone()));
                }
            }
        }
        Ok(())
    }

    fn change(&mut self, at: Timestamp, command: &Command) -> Answer {
        match command {
            Command::SyncStandards(sync) => {
                for name in &sync.resource_classes {
                    if !self.classes.contains_key(name) {
                        self.make_class(at, name);
                    }
                }
                for name in &sync.traits {
                    if !self.traits.contains_key(name) {
                        self.make_trait(at, name);
                    }
                }
                Ok(Reply::Done)
            }
            Command::CreateProvider(create) => self.create_provider(at, create),
            Command::UpdateProvider(update) => self.update_provider(at, update),
            Command::DeleteProvider(DeleteProvider { uuid }) => {
                self.known(uuid)?;
                let mut others = self.providers.values();
                let has_children = others.any(|other| other.parent == Some(*uuid));
                refuse_if(has_children, || Refusal::ProviderHasChildren(*uuid))?;
                let mut held = self.allocations.keys();
                let in_use = held.any(|(_, provider, _)| provider == uuid);
                refuse_if(in_use, || Refusal::ProviderInUse(*uuid))?;
                self.providers.remove(uuid);
                Ok(Reply::Done)
            }
            Command::ReplaceInventories(replace) => {
                let provider = &replace.provider;
                self.known(provider)?;
                self.same_generation(provider, replace.generation)?;
                for (class, inventory) in &replace.inventories {
                    capacity(provider, class, inventory, replace.capacity_rule)?;
                }
                self.set_inventories(at, provider, &replace.inventories)?;
                self.written(at, provider)
            }
            Command::CreateInventory(create) => {
                let (provider, inventory) = (create.provider, &create.inventory);
                self.known(&provider)?;
                capacity(
                    &provider,
                    &create.resource_class,
                    inventory,
                    create.capacity_rule,
                )?;
                let resource_class = self.named_class(&create.resource_class)?;
                refuse_if(self.has_inventory(&provider, &resource_class), || {
                    Refusal::InventoryExists(provider, resource_class.clone())
                })?;
                self.write_inventory(at, &provider, &resource_class, inventory)
            }
            Command::UpdateInventory(update) => {
                let (provider, inventory) = (update.provider, &update.inventory);
                self.known(&provider)?;
                self.same_generation(&provider, update.generation)?;
                capacity(
                    &provider,
                    &update.resource_class,
                    inventory,
                    update.capacity_rule,
                )?;
                let resource_class = self.named_class(&update.resource_class)?;
                refuse_if(!self.has_inventory(&provider, &resource_class), || {
                    Refusal::InventoryNotFound(provider, resource_class.clone())
                })?;
                self.write_inventory(at, &provider, &resource_class, inventory)
            }
            Command::DeleteInventory(delete) => {
                let provider = delete.provider;
                self.known(&provider)?;
                let resource_class = self.named_class(&delete.resource_class)?;
                refuse_if(self.used(&provider, &resource_class) > 0, || {
                    Refusal::InventoryInUse(provider, vec![resource_class.clone()])
                })?;
                refuse_if(!self.has_inventory(&provider, &resource_class), || {
                    Refusal::InventoryNotFound(provider, resource_class.clone())
                })?;
                self.provider_mut(&provider)
                    .inventories
                    .remove(&resource_class);
                self.bump(at, &provider);
                self.written(at, &provider)
            }
            Command::DeleteInventories(DeleteInventories { provider }) => {
                self.known(provider)?;
                self.set_inventories(at, provider, &BTreeMap::new())?;
                self.written(at, provider)
            }
            Command::ReplaceProviderTraits(replace) => {
                self.known(&replace.provider)?;
                self.same_generation(&replace.provider, replace.generation)?;
                let unknown = replace.traits.iter().filter(|name| !self.has_trait(name));
                let unknown: Vec<_> = unknown.cloned().collect();
                refuse_if(!unknown.is_empty(), || Refusal::TraitsNotFound(unknown))?;
                let traits = replace.traits.iter().filter_map(Given::valid).cloned();
                self.set_traits(at, &replace.provider, traits.collect())
            }
            Command::DeleteProviderTraits(DeleteProviderTraits { provider }) => {
                self.known(provider)?;
                self.set_traits(at, provider, BTreeSet::new())
            }
            Command::ReplaceProviderAggregates(replace) => {
                let provider = &replace.provider;
                self.known(provider)?;
                if let Some(generation) = replace.generation {
                    self.same_generation(provider, generation)?;
                    self.bump(at, provider);
                }
                self.provider_mut(provider).aggregates = replace.aggregates.clone();
                self.written(at, provider)
            }
            Command::EnsureTrait(EnsureTrait { name }) => {
                if let Some(named) = self.traits.get(name) {
                    return named_reply(false, named.made);
                }
                refuse_if(!name.is_custom(), || Refusal::TraitStandard(name.clone()))?;
                self.make_trait(at, name);
                named_reply(true, at)
            }
            Command::DeleteTrait(DeleteTrait { name }) => {
                let is_unknown = !self.traits.contains_key(name);
                refuse_if(is_unknown, || {
                    Refusal::TraitsNotFound(vec![Given::Valid(name.clone())])
                })?;
                refuse_if(!name.is_custom(), || Refusal::TraitStandard(name.clone()))?;
                let mut providers = self.providers.values();
                let in_use = providers.any(|provider| provider.traits.contains(name));
                refuse_if(in_use, || Refusal::TraitInUse(name.clone()))?;
                Arc::make_mut(&mut self.traits).remove(name);
                Ok(Reply::Done)
            }
            Command::CreateResourceClass(CreateResourceClass { name }) => {
                let exists = self.classes.contains_key(name);
                refuse_if(exists, || Refusal::ResourceClassExists(name.clone()))?;
                refuse_if(!name.is_custom(), || {
                    Refusal::ResourceClassStandardUpdate(name.clone())
                })?;
                self.make_class(at, name);
                named_reply(true, at)
            }
            Command::EnsureResourceClass(EnsureResourceClass { name }) => {
                if let Some(named) = self.classes.get(name) {
                    return named_reply(false, named.made);
                }
                refuse_if(!name.is_custom(), || {
                    Refusal::ResourceClassStandardUpdate(name.clone())
                })?;
                self.make_class(at, name);
                named_reply(true, at)
            }
            Command::RenameResourceClass(RenameResourceClass { name, new_name }) => {
                self.rename(at, name, new_name)
            }
            Command::DeleteResourceClass(DeleteResourceClass { name }) => {
                self.known_class(name)?;
                refuse_if(!name.is_custom(), || {
                    Refusal::ResourceClassStandardDelete(name.clone())
                })?;
                let mut providers = self.providers.values();
                let in_use = providers.any(|provider| provider.inventories.contains_key(name));
                refuse_if(in_use, || Refusal::ResourceClassInUse(name.clone()))?;
                Arc::make_mut(&mut self.classes).remove(name);
                Ok(Reply::Done)
            }
            Command::DeleteAllocations(DeleteAllocations { consumer }) => {
                let has_none = !self.holds_something(consumer);
                refuse_if(has_none, || {
                    Refusal::ConsumerHasNoAllocations(consumer.clone())
                })?;
                self.allocations
                    .retain(|(holder, _, _), _| holder != consumer);
                self.consumers.remove(consumer);
                Ok(Reply::Done)
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
            Command::ReplaceAllocations(_) | Command::Reshape(_) => {
                unreachable!("these commands have separate functions")
            }
        }
    }

    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn make_class(&mut self, at: Timestamp, name: &ResourceClassName) {
        let order = self.next();
        Arc::make_mut(&mut self.classes).insert(name.clone(), Named { order, made: at });
    }

    fn make_trait(&mut self, at: Timestamp, name: &TraitName) {
        let order = self.next();
        Arc::make_mut(&mut self.traits).insert(name.clone(), Named { order, made: at });
    }

    fn rename(
        &mut self,
        at: Timestamp,
        name: &ResourceClassName,
        new_name: &ResourceClassName,
    ) -> Answer {
        self.known_class(name)?;
        refuse_if(!name.is_custom(), || {
            Refusal::ResourceClassStandardUpdate(name.clone())
        })?;
        let is_taken = name != new_name && self.classes.contains_key(new_name);
        refuse_if(is_taken, || Refusal::ResourceClassExists(new_name.clone()))?;
        refuse_if(!new_name.is_custom(), || {
            Refusal::ResourceClassStandardUpdate(new_name.clone())
        })?;
        let classes = Arc::make_mut(&mut self.classes);
        let order = classes.remove(name).unwrap().order;
        classes.insert(new_name.clone(), Named { order, made: at });
        for provider in self.providers.values_mut() {
            if let Some(row) = provider.inventories.remove(name) {
                provider.inventories.insert(new_name.clone(), row);
            }
        }
        let old = std::mem::take(&mut self.allocations);
        for ((consumer, provider, class), amount) in old {
            let renamed = class == *name;
            let class = if renamed { new_name.clone() } else { class };
            self.allocations.insert((consumer, provider, class), amount);
        }
        named_reply(false, at)
    }

    fn provider_mut(&mut self, uuid: &ProviderUuid) -> &mut NaiveProvider {
        self.providers.get_mut(uuid).unwrap()
    }

    fn known(&self, uuid: &ProviderUuid) -> Result<(), Refusal> {
        let is_unknown = !self.providers.contains_key(uuid);
        refuse_if(is_unknown, || Refusal::ProviderNotFound(*uuid))
    }

    fn known_class(&self, name: &ResourceClassName) -> Result<(), Refusal> {
        let is_unknown = !self.classes.contains_key(name);
        refuse_if(is_unknown, || {
            Refusal::ResourceClassNotFound(Given::Valid(name.clone()))
        })
    }

    fn has_inventory(&self, provider: &ProviderUuid, class: &ResourceClassName) -> bool {
        self.providers[provider].inventories.contains_key(class)
    }

    fn holds_something(&self, consumer: &ConsumerUuid) -> bool {
        let mut held = self.allocations.keys();
        held.any(|(holder, _, _)| holder == consumer)
    }

    fn named_class(&self, given: &Given<ResourceClassName>) -> Result<ResourceClassName, Refusal> {
        match given {
            Given::Valid(name) if self.classes.contains_key(name) => Ok(name.clone()),
            _ => Err(Refusal::ResourceClassNotFound(given.clone())),
        }
    }

    fn has_trait(&self, given: &Given<TraitName>) -> bool {
        matches!(given, Given::Valid(name) if self.traits.contains_key(name))
    }

    fn given(&self, given: &Given<ProviderUuid>) -> Option<ProviderUuid> {
        self.providers
            .keys()
            .find(|uuid| uuid.to_string() == given.to_string())
            .copied()
    }

    fn same_generation(&self, provider: &ProviderUuid, given: Generation) -> Result<(), Refusal> {
        let actual = self.providers[provider].generation;
        refuse_if(given != actual, || Refusal::ProviderGenerationConflict {
            provider: *provider,
            given,
            actual,
        })
    }

    fn bump(&mut self, at: Timestamp, uuid: &ProviderUuid) {
        let provider = self.provider_mut(uuid);
        provider.generation.0 += 1;
        provider.updated = at;
    }

    fn written(&self, at: Timestamp, uuid: &ProviderUuid) -> Answer {
        Ok(Reply::ProviderWritten {
            generation: self.providers[uuid].generation,
            at,
        })
    }

    fn root(&self, uuid: &ProviderUuid) -> ProviderUuid {
        match self.providers[uuid].parent {
            Some(parent) => self.root(&parent),
            None => *uuid,
        }
    }

    /// The provider and all its ancestors, up to the root.
    fn ancestors(&self, uuid: &ProviderUuid) -> Vec<ProviderUuid> {
        let mut line = vec![*uuid];
        while let Some(parent) = self.providers[line.last().unwrap()].parent {
            line.push(parent);
        }
        line
    }

    fn create_provider(&mut self, at: Timestamp, create: &CreateProvider) -> Answer {
        let CreateProvider { uuid, name, parent } = create;
        let given = parent.as_ref().map(ToString::to_string);
        refuse_if(given == Some(uuid.to_string()), || {
            Refusal::ParentLoop(*uuid)
        })?;
        let parent = parent
            .as_ref()
            .map(|given| self.parent(given))
            .transpose()?;
        let is_known = self.providers.contains_key(uuid);
        refuse_if(is_known, || Refusal::DuplicateProviderUuid(*uuid))?;
        let is_taken = self.providers.values().any(|other| other.name == *name);
        refuse_if(is_taken, || Refusal::DuplicateProviderName(name.clone()))?;
        let order = self.next();
        let provider = NaiveProvider {
            order,
            name: name.clone(),
            generation: Generation(0),
            parent,
            updated: at,
            inventories: BTreeMap::new(),
            traits: BTreeSet::new(),
            aggregates: BTreeSet::new(),
        };
        self.providers.insert(*uuid, provider);
        Ok(Reply::Provider(self.provider(uuid).unwrap()))
    }

    fn parent(&self, given: &Given<ProviderUuid>) -> Result<ProviderUuid, Refusal> {
        let found = self.given(given);
        found.ok_or_else(|| Refusal::ParentNotFound(given.clone()))
    }

    fn update_provider(&mut self, at: Timestamp, update: &UpdateProvider) -> Answer {
        let (uuid, name) = (&update.uuid, &update.name);
        self.known(uuid)?;
        let old = self.providers[uuid].parent;
        let new = match &update.parent {
            ParentUpdate::Keep => old,
            ParentUpdate::Clear => None,
            ParentUpdate::Set(given) => Some(self.parent(given)?),
        };
        let is_forbidden = old.is_some() && new != old && !update.may_reparent;
        refuse_if(is_forbidden, || Refusal::ReparentForbidden(*uuid))?;
        let is_loop = new.is_some_and(|parent| self.ancestors(&parent).contains(uuid));
        refuse_if(is_loop, || Refusal::ParentLoop(*uuid))?;
        let mut others = self.providers.iter().filter(|(other, _)| *other != uuid);
        let is_taken = others.any(|(_, other)| other.name == *name);
        refuse_if(is_taken, || Refusal::DuplicateProviderName(name.clone()))?;
        let root = self.root(uuid);
        let provider = self.provider_mut(uuid);
        if provider.name != *name || new != old {
            provider.updated = at;
        }
        provider.name = name.clone();
        provider.parent = new;
        if self.root(uuid) != root {
            let all: Vec<_> = self.providers.keys().copied().collect();
            for other in all {
                if self.ancestors(&other).contains(uuid) {
                    self.provider_mut(&other).updated = at;
                }
            }
        }
        Ok(Reply::Provider(self.provider(uuid).unwrap()))
    }

    fn put_inventory(
        &mut self,
        at: Timestamp,
        provider: &ProviderUuid,
        class: &ResourceClassName,
        inventory: &Inventory,
    ) {
        let row = InventoryRow {
            inventory: *inventory,
            updated_at: at,
        };
        self.provider_mut(provider)
            .inventories
            .insert(class.clone(), row);
    }

    fn write_inventory(
        &mut self,
        at: Timestamp,
        provider: &ProviderUuid,
        class: &ResourceClassName,
        inventory: &Inventory,
    ) -> Answer {
        self.put_inventory(at, provider, class, inventory);
        self.bump(at, provider);
        self.written(at, provider)
    }

    fn set_inventories(
        &mut self,
        at: Timestamp,
        provider: &ProviderUuid,
        inventories: &BTreeMap<Given<ResourceClassName>, Inventory>,
    ) -> Result<(), Refusal> {
        let mut wanted = BTreeMap::new();
        for (class, inventory) in inventories {
            wanted.insert(self.named_class(class)?, *inventory);
        }
        let old = self.providers[provider].inventories.keys().cloned();
        let gone: Vec<_> = old.filter(|class| !wanted.contains_key(class)).collect();
        let in_use = gone.iter().filter(|class| self.used(provider, class) > 0);
        let mut in_use: Vec<_> = in_use.cloned().collect();
        in_use.sort_by_key(|class| self.classes[class].order);
        refuse_if(!in_use.is_empty(), || {
            Refusal::InventoryInUse(*provider, in_use)
        })?;
        for class in gone {
            self.provider_mut(provider).inventories.remove(&class);
        }
        for (class, inventory) in &wanted {
            self.put_inventory(at, provider, class, inventory);
        }
        self.bump(at, provider);
        Ok(())
    }

    fn set_traits(
        &mut self,
        at: Timestamp,
        provider: &ProviderUuid,
        traits: BTreeSet<TraitName>,
    ) -> Answer {
        if self.providers[provider].traits != traits {
            self.provider_mut(provider).traits = traits;
            self.bump(at, provider);
        }
        self.written(at, provider)
    }

    /// The allocated units of an inventory.
    pub fn used(&self, provider: &ProviderUuid, class: &ResourceClassName) -> u64 {
        let of = |(_, p, c): &(ConsumerUuid, ProviderUuid, ResourceClassName)| {
            p == provider && c == class
        };
        self.allocations
            .iter()
            .filter(|(key, _)| of(key))
            .map(|(_, amount)| amount)
            .sum()
    }

    /// New consumers are created first, in a separate step, and are kept if a provider is unknown.
    fn write_allocations(
        &mut self,
        at: Timestamp,
        inventories: &[ReshapedInventories],
        consumers: &[ConsumerAllocations],
    ) -> Outcome {
        for reshaped in inventories {
            let Some(provider) = self.given(&reshaped.provider) else {
                let given = reshaped.provider.clone();
                return Outcome::Refused(Refusal::ReshapeProviderNotFound(given));
            };
            if let Err(refusal) = self.same_generation(&provider, reshaped.generation) {
                return Outcome::Refused(refusal);
            }
        }
        let mut made = self.clone();
        for wanted in consumers {
            if let Err(refusal) = made.ensure_consumer(at, wanted, self) {
                return Outcome::Refused(refusal);
            }
        }
        for asked in consumers.iter().flat_map(|wanted| &wanted.allocations) {
            if self.given(&asked.provider).is_none() {
                *self = made;
                let given = asked.provider.clone();
                return Outcome::Refused(Refusal::AllocationProviderNotFound(given));
            }
        }
        match made.reshape(at, inventories, consumers) {
            Ok(()) => {
                *self = made;
                Outcome::Done(Reply::Done)
            }
            Err(refusal) => Outcome::Refused(refusal),
        }
    }

    fn ensure_consumer(
        &mut self,
        at: Timestamp,
        wanted: &ConsumerAllocations,
        before: &Naive,
    ) -> Result<(), Refusal> {
        let actual = before.consumers.get(&wanted.consumer);
        let actual = actual.map(|consumer| consumer.generation);
        let given = match wanted.generation {
            ConsumerGeneration::Unchecked => actual,
            ConsumerGeneration::New => None,
            ConsumerGeneration::Expect(generation) => Some(generation),
        };
        refuse_if(given != actual, || Refusal::ConsumerGenerationConflict {
            consumer: wanted.consumer.clone(),
            given,
            actual,
        })?;
        if actual.is_none() {
            let consumer = NaiveConsumer {
                generation: Generation(0),
                project: wanted.project.clone(),
                user: wanted.user.clone(),
                consumer_type: match &wanted.consumer_type {
                    ConsumerTypeUpdate::Keep => None,
                    ConsumerTypeUpdate::Set(name) => Some(name.clone()),
                },
                updated: at,
            };
            self.consumers.insert(wanted.consumer.clone(), consumer);
        }
        Ok(())
    }

    fn reshape(
        &mut self,
        at: Timestamp,
        inventories: &[ReshapedInventories],
        consumers: &[ConsumerAllocations],
    ) -> Result<(), Refusal> {
        for wanted in consumers {
            let consumer = self.consumers.get_mut(&wanted.consumer).unwrap();
            consumer.project = wanted.project.clone();
            consumer.user = wanted.user.clone();
            if let ConsumerTypeUpdate::Set(name) = &wanted.consumer_type {
                consumer.consumer_type = Some(name.clone());
            }
        }
        for reshaped in inventories {
            let provider = self.given(&reshaped.provider).unwrap();
            for (class, inventory) in &reshaped.inventories {
                let class = self.named_class(class)?;
                self.put_inventory(at, &provider, &class, inventory);
            }
            if !reshaped.inventories.is_empty() {
                self.bump(at, &provider);
            }
        }
        self.replace_allocations(at, consumers)?;
        for reshaped in inventories {
            let provider = self.given(&reshaped.provider).unwrap();
            self.set_inventories(at, &provider, &reshaped.inventories)?;
        }
        Ok(())
    }

    fn replace_allocations(
        &mut self,
        at: Timestamp,
        consumers: &[ConsumerAllocations],
    ) -> Result<(), Refusal> {
        let mut lines = Vec::new();
        for wanted in consumers {
            for ProviderAmounts {
                provider,
                resources,
            } in &wanted.allocations
            {
                let provider = self.given(provider).unwrap();
                for (class, amount) in resources {
                    lines.push((wanted.consumer.clone(), provider, class.clone(), *amount));
                }
            }
            if wanted.allocations.is_empty() {
                let held = self
                    .allocations
                    .keys()
                    .filter(|(c, _, _)| *c == wanted.consumer);
                let emptied =
                    held.map(|(c, p, class)| (c.clone(), *p, Given::Valid(class.clone()), 0));
                lines.extend(emptied.collect::<Vec<_>>());
            }
        }
        let known = |(consumer, provider, class, amount)| {
            Ok((consumer, provider, self.named_class(&class)?, amount))
        };
        let lines: Vec<_> = lines
            .into_iter()
            .map(known)
            .collect::<Result<_, Refusal>>()?;
        let before = self.clone();
        for (consumer, _, _, _) in &lines {
            self.allocations
                .retain(|(holder, _, _), _| holder != consumer);
        }
        self.check(&before, &lines)?;
        let mut providers = BTreeSet::new();
        let mut named = BTreeSet::new();
        for (consumer, provider, class, amount) in lines {
            providers.insert(provider);
            named.insert(consumer.clone());
            if amount > 0 {
                self.allocations.insert((consumer, provider, class), amount);
            }
        }
        for provider in providers {
            self.bump(at, &provider);
        }
        for consumer in named {
            if self.holds_something(&consumer) {
                let row = self.consumers.get_mut(&consumer).unwrap();
                row.generation.0 += 1;
                row.updated = at;
            } else {
                self.consumers.remove(&consumer);
            }
        }
        Ok(())
    }

    fn check(
        &self,
        before: &Naive,
        lines: &[(ConsumerUuid, ProviderUuid, ResourceClassName, u64)],
    ) -> Result<(), Refusal> {
        let classes: BTreeSet<_> = lines.iter().map(|(_, _, class, _)| class.clone()).collect();
        let lacks = |provider: &ProviderUuid| {
            !self.providers[provider]
                .inventories
                .keys()
                .any(|class| classes.contains(class))
        };
        let providers: BTreeSet<_> = lines
            .iter()
            .map(|(_, provider, _, _)| *provider)
            .filter(lacks)
            .collect();
        if !providers.is_empty() {
            let mut resource_classes: Vec<_> = classes.into_iter().collect();
            resource_classes.sort_by_key(|class| self.classes[class].order);
            let providers = providers.into_iter().collect();
            return Err(Refusal::AllocationWithoutInventory(
                resource_classes,
                providers,
            ));
        }
        for (index, (_, provider, class, amount)) in lines.iter().enumerate() {
            if *amount == 0 {
                continue;
            }
            let Some(row) = self.providers[provider].inventories.get(class) else {
                let (classes, providers) = (vec![class.clone()], vec![*provider]);
                return Err(Refusal::AllocationWithoutInventory(classes, providers));
            };
            let i = row.inventory;
            let (provider, resource_class) = (*provider, class.clone());
            refuse_if(!permits(&i, *amount), || {
                Refusal::AllocationConstraints(provider, resource_class.clone())
            })?;
            let so_far = lines[..=index]
                .iter()
                .filter(|(_, p, c, _)| *p == provider && c == class);
            let sum = self.used(&provider, class) + so_far.map(|line| line.3).sum::<u64>();
            let used_before = before.used(&provider, class);
            let is_worse = used_before == 0 || sum > used_before;
            let is_full = sum as f64 > exact_capacity(&i) && is_worse;
            refuse_if(is_full, || {
                Refusal::AllocationCapacity(provider, resource_class)
            })?;
        }
        Ok(())
    }
}

fn capacity(
    provider: &ProviderUuid,
    class: &Given<ResourceClassName>,
    inventory: &Inventory,
    rule: CapacityRule,
) -> Result<(), Refusal> {
    let truncated = exact_capacity(inventory).trunc();
    let (good, may_reserve_all) = match rule {
        CapacityRule::Positive => (truncated > 0.0, false),
        CapacityRule::NotNegative => (truncated >= 0.0, true),
    };
    refuse_if(!good, || Refusal::InventoryCapacity {
        provider: *provider,
        resource_class: class.clone(),
        may_reserve_all,
    })
}

fn exact_capacity(inventory: &Inventory) -> f64 {
    (f64::from(inventory.total) - f64::from(inventory.reserved)) * inventory.allocation_ratio
}

fn permits(inventory: &Inventory, amount: u64) -> bool {
    (u64::from(inventory.min_unit)..=u64::from(inventory.max_unit)).contains(&amount)
        && amount.is_multiple_of(u64::from(inventory.step_size))
}

fn refuse_if(holds: bool, refusal: impl FnOnce() -> Refusal) -> Result<(), Refusal> {
    match holds {
        true => Err(refusal()),
        false => Ok(()),
    }
}

fn named_reply(created: bool, modified: Timestamp) -> Answer {
    Ok(Reply::Named { created, modified })
}

/// Queries of the naive model.
impl Naive {
    /// `GET /resource_providers/{uuid}`, without links.
    pub fn provider(&self, uuid: &ProviderUuid) -> Option<Provider> {
        let provider = self.providers.get(uuid)?;
        Some(Provider {
            uuid: *uuid,
            name: provider.name.clone(),
            generation: provider.generation,
            parent: provider.parent,
            root: self.root(uuid),
            modified: provider.updated,
        })
    }

    fn in_order<'a, T>(
        &'a self,
        classes: impl IntoIterator<Item = (&'a ResourceClassName, T)>,
    ) -> Vec<(ResourceClassName, T)> {
        let mut list: Vec<_> = classes
            .into_iter()
            .map(|(name, t)| (name.clone(), t))
            .collect();
        list.sort_by_key(|(name, _)| self.classes[name].order);
        list
    }

    /// `GET …/inventories`, in the order of the classes' creation.
    pub fn inventories(
        &self,
        uuid: &ProviderUuid,
    ) -> Option<(Generation, Vec<(ResourceClassName, InventoryRow)>)> {
        let provider = self.providers.get(uuid)?;
        let rows = provider.inventories.iter();
        let rows = rows.map(|(name, row)| (name, row.clone()));
        Some((provider.generation, self.in_order(rows)))
    }

    /// `GET …/usages` of a provider.
    pub fn provider_usages(
        &self,
        uuid: &ProviderUuid,
    ) -> Option<(Generation, BTreeMap<ResourceClassName, u64>)> {
        let provider = self.providers.get(uuid)?;
        let usage = |class: &ResourceClassName| (class.clone(), self.used(uuid, class));
        let usages = provider.inventories.keys().map(usage);
        Some((provider.generation, usages.collect()))
    }

    /// `GET …/traits` of a provider.
    pub fn provider_traits(
        &self,
        uuid: &ProviderUuid,
    ) -> Option<(Generation, Vec<(TraitName, Timestamp)>)> {
        let provider = self.providers.get(uuid)?;
        let made = |name: &TraitName| (name.clone(), self.traits[name].made);
        let traits = provider.traits.iter().map(made);
        Some((provider.generation, traits.collect()))
    }

    /// `GET …/aggregates` of a provider.
    pub fn provider_aggregates(
        &self,
        uuid: &ProviderUuid,
    ) -> Option<(Generation, BTreeSet<AggregateUuid>)> {
        let provider = self.providers.get(uuid)?;
        Some((provider.generation, provider.aggregates.clone()))
    }

    fn held(
        &self,
        consumer: &ConsumerUuid,
        provider: &ProviderUuid,
    ) -> Vec<(ResourceClassName, u64)> {
        let mine = self
            .allocations
            .iter()
            .filter(|((c, p, _), _)| c == consumer && p == provider);
        self.in_order(mine.map(|((_, _, class), amount)| (class, *amount)))
    }

    /// `GET …/allocations` of a provider.
    pub fn provider_holdings(
        &self,
        uuid: &ProviderUuid,
    ) -> Option<(Generation, Vec<ProviderHolding>)> {
        let generation = self.providers.get(uuid)?.generation;
        let holding = |(name, consumer): (&ConsumerUuid, &NaiveConsumer)| ProviderHolding {
            consumer: name.clone(),
            consumer_generation: consumer.generation,
            resources: self.held(name, uuid),
            modified: consumer.updated,
        };
        let holdings = self.consumers.iter().map(holding);
        let holdings = holdings.filter(|holding| !holding.resources.is_empty());
        Some((generation, holdings.collect()))
    }

    /// `GET /allocations/{consumer}`, without links.
    pub fn consumer(&self, name: &ConsumerUuid) -> Option<Consumer> {
        let consumer = self.consumers.get(name)?;
        let mut providers: Vec<_> = self.providers.iter().collect();
        providers.sort_by_key(|(_, provider)| provider.order);
        let holding = |(uuid, provider): (&ProviderUuid, &NaiveProvider)| ConsumerHolding {
            provider: *uuid,
            generation: provider.generation,
            resources: self.held(name, uuid),
        };
        let allocations = providers.into_iter().map(holding);
        Some(Consumer {
            generation: consumer.generation,
            project: consumer.project.clone(),
            user: consumer.user.clone(),
            consumer_type: consumer.consumer_type.clone(),
            allocations: allocations
                .filter(|holding| !holding.resources.is_empty())
                .collect(),
            modified: consumer.updated,
        })
    }

    /// `GET /usages`, by consumer type.
    pub fn usages(
        &self,
        project: &ProjectId,
        user: Option<&UserId>,
    ) -> BTreeMap<Option<ConsumerTypeName>, TypeUsage> {
        let mut usages: BTreeMap<_, TypeUsage> = BTreeMap::new();
        for (name, consumer) in &self.consumers {
            let mine = self.allocations.iter().filter(|((c, _, _), _)| c == name);
            let mine: Vec<_> = mine.collect();
            let charged = consumer.project == *project
                && user.is_none_or(|user| consumer.user == *user)
                && !mine.is_empty();
            if !charged {
                continue;
            }
            let usage = usages.entry(consumer.consumer_type.clone()).or_default();
            usage.consumer_count += 1;
            for ((_, _, class), amount) in mine {
                *usage.usages.entry(class.clone()).or_default() += amount;
            }
        }
        usages
    }

    /// `GET /resource_classes`, standard classes first.
    pub fn resource_classes(&self) -> Vec<(ResourceClassName, Timestamp)> {
        let mut all: Vec<_> = self.classes.iter().collect();
        all.sort_by_key(|(name, named)| (name.is_custom(), named.order));
        all.into_iter()
            .map(|(name, named)| (name.clone(), named.made))
            .collect()
    }

    /// `GET /traits`. With `associated`, only traits that some provider has (true) or no provider
    /// has (false).
    pub fn traits(&self, associated: Option<bool>) -> Vec<(TraitName, Timestamp)> {
        let has = |name: &TraitName| self.providers.values().any(|p| p.traits.contains(name));
        let wanted = self
            .traits
            .iter()
            .filter(|(name, _)| associated.is_none_or(|w| w == has(name)));
        wanted
            .map(|(name, named)| (name.clone(), named.made))
            .collect()
    }

    /// Whether the resource class exists.
    pub fn has_resource_class(&self, name: &ResourceClassName) -> bool {
        self.classes.contains_key(name)
    }

    /// Whether the trait exists.
    pub fn has_trait_named(&self, name: &TraitName) -> bool {
        self.traits.contains_key(name)
    }

    /// `GET /placementd/v1/capacity`, without a limit of rows.
    pub fn capacity(&self, class: Option<&ResourceClassName>, by: CapacityBy) -> CapacityReport {
        let mut rows: BTreeMap<_, CapacitySums> = BTreeMap::new();
        for (uuid, provider) in &self.providers {
            let root = &self.providers[&self.root(uuid)];
            let facets: Vec<(Option<AggregateUuid>, Option<TraitName>)> = match by {
                CapacityBy::Class => vec![(None, None)],
                CapacityBy::Aggregate => (provider.aggregates.union(&root.aggregates))
                    .map(|aggregate| (Some(aggregate.clone()), None))
                    .collect(),
                CapacityBy::Trait => (provider.traits.iter())
                    .map(|name| (None, Some(name.clone())))
                    .collect(),
            };
            for (name, row) in &provider.inventories {
                if class.is_some_and(|class| class != name) {
                    continue;
                }
                for facet in &facets {
                    let used = self.used(uuid, name);
                    let left = exact_capacity(&row.inventory).trunc() - used as f64;
                    let free = left.max(0.0) as u64;
                    let sums = rows.entry((name.clone(), facet.clone())).or_default();
                    sums.providers += 1;
                    sums.total += u64::from(row.inventory.total);
                    sums.reserved += u64::from(row.inventory.reserved);
                    sums.capacity += row.inventory.capacity();
                    sums.used += used;
                    sums.free += free;
                    let largest = free.min(u64::from(row.inventory.max_unit));
                    sums.largest_free = sums.largest_free.max(largest);
                    if by == CapacityBy::Class {
                        let range = if free == 0 {
                            0
                        } else {
                            free.ilog2() as usize + 1
                        };
                        let ranges = sums.free_ranges.len().max(range + 1);
                        sums.free_ranges.resize(ranges, 0);
                        sums.free_ranges[range] += 1;
                    }
                }
            }
        }
        let row = |((class, (aggregate, trait_name)), sums)| ClassCapacity {
            class,
            aggregate,
            trait_name,
            sums,
        };
        CapacityReport {
            by,
            capacity: rows.into_iter().map(row).collect(),
        }
    }

    /// `GET /placementd/v1/consumers`, all pages.
    pub fn consumers(&self, filter: &ConsumerFilter) -> Vec<ListedConsumer> {
        let passes = |consumer: &ListedConsumer| {
            let holds = |allocation: &ListedAllocation| {
                let of_provider = (filter.provider).is_none_or(|it| it == allocation.provider.uuid);
                let mut classes = allocation.resources.keys();
                of_provider
                    && (filter.class.as_ref()).is_none_or(|it| classes.any(|class| class == it))
            };
            let mut rules = vec![
                filter
                    .project
                    .as_ref()
                    .is_none_or(|it| *it == consumer.project_id),
                filter
                    .user
                    .as_ref()
                    .is_none_or(|it| *it == consumer.user_id),
                filter
                    .consumer_type
                    .as_ref()
                    .is_none_or(|it| *it == consumer.consumer_type),
                filter
                    .updated_until
                    .is_none_or(|it| consumer.updated_at <= it),
                !filter.several_trees || consumer.trees >= 2,
            ];
            if filter.provider.is_some() || filter.class.is_some() {
                rules.push(consumer.allocations.iter().any(holds));
            }
            rules.into_iter().all(|rule| rule)
        };
        let all = self.consumers.keys().map(|uuid| self.listed(uuid));
        all.filter(passes).collect()
    }

    fn listed(&self, uuid: &ConsumerUuid) -> ListedConsumer {
        let consumer = self.consumer(uuid).unwrap();
        let allocation = |holding: &ConsumerHolding| ListedAllocation {
            provider: self.named_provider(&holding.provider),
            root: self.named_provider(&self.root(&holding.provider)),
            resources: holding.resources.iter().cloned().collect(),
        };
        let shares = |holding: &&ConsumerHolding| {
            let mut traits = self.providers[&holding.provider].traits.iter();
            traits.any(|name| name.as_str() == "MISC_SHARES_VIA_AGGREGATE")
        };
        let trees = (consumer.allocations.iter())
            .filter(|holding| !shares(holding))
            .map(|holding| self.root(&holding.provider));
        ListedConsumer {
            uuid: uuid.clone(),
            trees: trees.collect::<BTreeSet<_>>().len(),
            allocations: consumer.allocations.iter().map(allocation).collect(),
            consumer_type: consumer.consumer_type,
            project_id: consumer.project,
            user_id: consumer.user,
            generation: consumer.generation,
            updated_at: consumer.modified,
        }
    }

    fn named_provider(&self, uuid: &ProviderUuid) -> NamedProvider {
        NamedProvider {
            uuid: *uuid,
            name: self.providers[uuid].name.clone(),
        }
    }

    /// `GET /placementd/v1/trees/{uuid}`, the whole tree.
    pub fn tree_with(&self, uuid: &ProviderUuid) -> Option<ShownTree> {
        self.providers.get(uuid)?;
        let root = self.root(uuid);
        let mut providers = Vec::new();
        self.show_with_descendants(&root, &mut providers);
        Some(ShownTree { root, providers })
    }

    fn show_with_descendants(&self, uuid: &ProviderUuid, shown: &mut Vec<ShownProvider>) {
        let provider = &self.providers[uuid];
        let inventory = |(class, row): (&ResourceClassName, &InventoryRow)| {
            let inventory = ShownInventory {
                inventory: row.inventory,
                capacity: row.inventory.capacity(),
                used: self.used(uuid, class),
            };
            (class.clone(), inventory)
        };
        shown.push(ShownProvider {
            uuid: *uuid,
            name: provider.name.clone(),
            parent: provider.parent,
            generation: provider.generation,
            inventories: provider.inventories.iter().map(inventory).collect(),
            traits: provider.traits.clone(),
            aggregates: provider.aggregates.clone(),
            holders: self.provider_holdings(uuid).unwrap().1.len(),
        });
        let children = self.providers.iter();
        let mut children: Vec<_> = children
            .filter(|(_, it)| it.parent == Some(*uuid))
            .collect();
        children.sort_by_key(|(_, child)| child.order);
        for (child, _) in children {
            self.show_with_descendants(child, shown);
        }
    }

    /// The cloud as input of [`crate::candidates::judge`]. Providers are named by their UUIDs.
    pub fn sample_cloud(&self) -> SampleCloud {
        let mut providers: Vec<_> = self.providers.iter().collect();
        providers.sort_by_key(|(_, provider)| provider.order);
        let sample_cloud =
            |(uuid, provider): (&ProviderUuid, &NaiveProvider)| sample_cloud::Provider {
                name: uuid.to_string(),
                uuid: *uuid,
                parent: provider.parent.map(|parent| parent.to_string()),
                stocks: (provider.inventories.iter())
                    .map(|(class, row)| (class.to_string(), self.stock(uuid, class, row)))
                    .collect(),
                traits: provider.traits.iter().map(ToString::to_string).collect(),
                aggregates: (provider.aggregates.iter())
                    .map(ToString::to_string)
                    .collect(),
            };
        SampleCloud {
            providers: providers.into_iter().map(sample_cloud).collect(),
            classes: self.classes.keys().map(ToString::to_string).collect(),
            traits: self.traits.keys().map(ToString::to_string).collect(),
        }
    }

    fn stock(&self, uuid: &ProviderUuid, class: &ResourceClassName, row: &InventoryRow) -> Stock {
        Stock {
            inventory: row.inventory,
            used: self.used(uuid, class),
        }
    }

    /// `GET /resource_providers` as upstream evaluates it: one filter after the other, ending at
    /// the first filter that no provider passes.
    pub fn providers(&self, filter: &ProviderFilter) -> Result<Vec<Provider>, UnknownName> {
        let mut left: Vec<_> = self.providers.iter().collect();
        left.sort_by_key(|(_, provider)| provider.order);
        if let Some(name) = filter.name.as_ref().filter(|name| !name.is_empty()) {
            left.retain(|(_, provider)| provider.name.as_str() == name);
        }
        if let Some(given) = &filter.uuid {
            left.retain(|(other, _)| other.to_string() == given.to_string());
        }
        if let Some(given) = &filter.in_tree {
            let Some(uuid) = self.given(given) else {
                return Ok(Vec::new());
            };
            left.retain(|(other, _)| self.root(other) == self.root(&uuid));
        }
        let unknown = |names: &BTreeSet<Given<TraitName>>| -> Result<(), UnknownName> {
            let unknown = names.iter().filter(|name| !self.has_trait(name));
            let unknown: Vec<_> = unknown.cloned().collect();
            if unknown.is_empty() {
                Ok(())
            } else {
                Err(UnknownName::Traits(unknown))
            }
        };
        for any in &filter.required {
            unknown(any)?;
        }
        let has = |provider: &NaiveProvider, given: &Given<TraitName>| {
            given.valid().is_some_and(|t| provider.traits.contains(t))
        };
        let has_required = |provider: &NaiveProvider| {
            filter
                .required
                .iter()
                .all(|any| any.iter().any(|t| has(provider, t)))
        };
        if !filter.required.is_empty() && !self.providers.values().any(has_required) {
            return Ok(Vec::new());
        }
        left.retain(|(_, provider)| has_required(provider));
        unknown(&filter.forbidden)?;
        left.retain(|(_, p)| !filter.forbidden.iter().any(|t| has(p, t)));
        let is_member = |provider: &NaiveProvider| {
            filter
                .member_of
                .iter()
                .all(|any| any.iter().any(|a| provider.aggregates.contains(a)))
        };
        if !filter.member_of.is_empty() && !self.providers.values().any(is_member) {
            return Ok(Vec::new());
        }
        left.retain(|(_, provider)| is_member(provider));
        left.retain(|(_, p)| {
            !filter
                .not_member_of
                .iter()
                .any(|a| p.aggregates.contains(a))
        });
        for (class, amount) in &filter.resources {
            let Ok(class) = &self.named_class(class) else {
                return Err(UnknownName::ResourceClass(class.clone()));
            };
            left.retain(|(uuid, provider)| {
                let row = provider.inventories.get(class);
                row.is_some_and(|row| {
                    let sum = self.used(uuid, class) + amount;
                    permits(&row.inventory, *amount) && sum as f64 <= exact_capacity(&row.inventory)
                })
            });
        }
        let left = left.into_iter();
        Ok(left.map(|(uuid, _)| self.provider(uuid).unwrap()).collect())
    }
}
