//! Imports the rows of another cluster into a partition that no client uses.
//! [`Cluster::apply`](crate::Cluster::apply) checks that no routes lead to the partition.

use std::collections::BTreeSet;

use super::draft::Draft;
use super::names::{self, Name};
use super::{Decide, Decision, ensure};
use crate::command::{FillPartition, Filled, FilledConsumer, FilledProvider};
use crate::outcome::{ImportConflict, Refusal, Reply};
use crate::state::State;
use crate::state::change::{
    Amount, Change, Changes, ConsumerRow, Counters, NameRow, ProviderId, ProviderRow,
    ResourceClassId, TraitId,
};
use crate::types::{Inventory, ProviderUuid, ResourceClassName, Timestamp};

/// Largest allocation, and largest value of an inventory's integer fields.
const UNITS_MAX: u32 = i32::MAX as u32;

/// Each row is checked against the state with all previous rows.
impl Decide for FillPartition {
    fn decide(&self, state: &State, _at: Timestamp) -> Decision {
        let (has, expected) = (state.filled(), self.after);
        ensure(has == expected, || Refusal::PartitionNotEmpty {
            has,
            expected,
        })?;
        let mut scratch = state.clone();
        let mut draft = Draft::new(&mut scratch);
        let mut counters = state.counters();
        for row in &self.resource_classes {
            draft.step(|state, changes| {
                let known = state.resource_class_id(&row.name).map(|id| id.0);
                put_name(row, known, &mut counters, changes)
            })?;
        }
        for row in &self.traits {
            draft.step(|state, changes| {
                let known = state.trait_id(&row.name).map(|id| id.0);
                put_name(row, known, &mut counters, changes)
            })?;
        }
        for new in &self.providers {
            draft.step(|state, changes| put_provider(state, new, &mut counters, changes))?;
        }
        for (child, parent) in &self.parents {
            draft.step(|state, changes| put_below(state, child, parent, changes))?;
        }
        for new in &self.consumers {
            draft.step(|state, changes| put_consumer(state, new, changes))?;
        }
        let mut changes = draft.into_changes();
        if counters != state.counters() {
            changes.push(Change::PutCounters(counters));
        }
        Ok((Reply::Done, changes))
    }
}

impl State {
    /// The number of providers and consumers in the partition.
    pub fn filled(&self) -> Filled {
        let sizes = self.sizes();
        Filled {
            providers: sizes.providers as u64,
            consumers: sizes.consumers as u64,
        }
    }
}

fn put_name<N: Name>(
    row: &NameRow<N>,
    known: Option<u32>,
    counters: &mut Counters,
    changes: &mut Changes,
) -> Result<(), Refusal> {
    match known {
        Some(id) => {
            changes.push(N::put(id, row.clone()));
            Ok(())
        }
        None => names::make(&row.name, row.updated_at, counters, changes),
    }
}

fn put_provider(
    state: &State,
    new: &FilledProvider,
    counters: &mut Counters,
    changes: &mut Changes,
) -> Result<(), Refusal> {
    let unfit = |why| Refusal::ProviderUnfit(new.uuid, why);
    ensure(state.place(&new.uuid).is_none(), || {
        unfit(ImportConflict::Exists)
    })?;
    let is_free = state.providers.id_of_name(&new.name).is_none();
    ensure(is_free, || unfit(ImportConflict::NameTaken))?;
    let dangling = || unfit(ImportConflict::Dangling);
    let parent = new
        .parent
        .map(|uuid| state.providers.id_of_uuid(&uuid))
        .map(|id| id.ok_or_else(dangling))
        .transpose()?;
    let id = ProviderId(counters.provider);
    counters.provider = id.0.checked_add(1).ok_or(Refusal::IdsExhausted)?;
    let row = ProviderRow {
        uuid: new.uuid,
        name: new.name.clone(),
        generation: new.generation,
        parent,
        created_at: new.created_at,
        updated_at: new.updated_at,
    };
    changes.push(Change::PutProvider(id, row));
    for (name, row) in &new.inventories {
        let class = state.resource_class_id(name).ok_or_else(dangling)?;
        ensure(is_in_range(&row.inventory), || {
            unfit(ImportConflict::OutOfRange)
        })?;
        changes.push(Change::PutInventory(id, class, row.clone()));
    }
    let traits: Option<BTreeSet<TraitId>> =
        new.traits.iter().map(|name| state.trait_id(name)).collect();
    let traits = traits.ok_or_else(dangling)?;
    if !traits.is_empty() {
        changes.push(Change::PutProviderTraits(id, traits));
    }
    if !new.aggregates.is_empty() {
        changes.push(Change::PutProviderAggregates(id, new.aggregates.clone()));
    }
    Ok(())
}

fn is_in_range(inventory: &Inventory) -> bool {
    let from_0 = [inventory.total, inventory.reserved];
    let from_1 = [inventory.min_unit, inventory.max_unit, inventory.step_size];
    from_0.iter().all(|units| *units <= UNITS_MAX)
        && from_1.iter().all(|units| (1..=UNITS_MAX).contains(units))
        && inventory.allocation_ratio.is_finite()
}

/// Moves a root below a parent in another tree, so that no loop can arise. A child that already has
/// this parent is accepted: [`Filled`] does not count parents, so the sender repeats them if it
/// does not know the outcome of a command.
fn put_below(
    state: &State,
    child: &ProviderUuid,
    parent: &ProviderUuid,
    changes: &mut Changes,
) -> Result<(), Refusal> {
    let unfit = |why| Refusal::ProviderUnfit(*child, why);
    let places = state.place(child).zip(state.place(parent));
    let (place, above) = places.ok_or_else(|| unfit(ImportConflict::Dangling))?;
    let row = state.providers.row(place);
    let parent = Some(state.node(above).id);
    if row.parent == parent {
        return Ok(());
    }
    let can_be = place.node == 0 && above.tree != place.tree;
    ensure(can_be, || unfit(ImportConflict::Parent))?;
    let row = ProviderRow { parent, ..row };
    changes.push(Change::PutProvider(state.node(place).id, row));
    Ok(())
}

fn put_consumer(state: &State, new: &FilledConsumer, changes: &mut Changes) -> Result<(), Refusal> {
    let unfit = |why| Refusal::ConsumerUnfit(new.uuid.clone(), why);
    let is_new = state.consumers.row(&new.uuid).is_none();
    ensure(is_new, || unfit(ImportConflict::Exists))?;
    let mut held = Vec::new();
    for (provider, amounts) in &new.allocations {
        for (class, units) in amounts {
            let found = inventory_ids(state, provider, class);
            let (provider, class) = found.ok_or_else(|| unfit(ImportConflict::Dangling))?;
            let in_range = (1..=u64::from(UNITS_MAX)).contains(units);
            ensure(in_range, || unfit(ImportConflict::OutOfRange))?;
            held.push(Amount {
                provider,
                class,
                units: *units,
            });
        }
    }
    let row = ConsumerRow {
        generation: new.generation,
        project: new.project.clone(),
        user: new.user.clone(),
        consumer_type: new.consumer_type.clone(),
        allocations: held.into_iter().collect(),
        updated_at: new.updated_at,
        hold: new.hold.clone(),
    };
    changes.push(Change::PutConsumer(new.uuid.clone(), row));
    Ok(())
}

/// The ids of an existing inventory.
fn inventory_ids(
    state: &State,
    provider: &ProviderUuid,
    class: &ResourceClassName,
) -> Option<(ProviderId, ResourceClassId)> {
    let node = state.node(state.place(provider)?);
    let class = state.resource_class_id(class)?;
    node.stock(class).map(|_| (node.id, class))
}
