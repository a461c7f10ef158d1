//! Checks the amounts of claims against inventories, and computes the changes.

use std::collections::{BTreeMap, BTreeSet};

use super::consumers::{self, Claim, Inspected};
use super::ensure;
use super::holds::{HoldUpdate, WrittenHold};
use super::providers::ExistingProvider;
use crate::outcome::{Refusal, Shortage};
use crate::state::State;
use crate::state::change::{Change, Changes, ProviderId, ResourceClassId, RowKey};
use crate::types::{ProviderUuid, ResourceClassName, Timestamp};

/// The providers of a request are looked up before this check, and a provider with allocations
/// cannot be deleted.
const FOUND: &str = "the provider of a claim exists";

/// Units by provider and class.
type Units = BTreeMap<(ProviderId, ResourceClassId), u64>;

/// Replaces the allocations of the consumers, all or nothing. Checks first that all classes exist,
/// then that the providers have inventories, then each amount against the units and the capacity.
pub(super) fn claim(
    state: &State,
    at: Timestamp,
    inspected: &Inspected<'_>,
    holds: &HoldUpdate,
    changes: &mut Changes,
) -> Result<(), Refusal> {
    if let Some(refusal) = &inspected.unknown_class {
        return Err(refusal.clone());
    }
    let claims = &inspected.claims;
    let providers: BTreeSet<_> = claims.iter().map(|claim| claim.provider).collect();
    check_inventories(state, claims, &providers)?;
    check_amounts(state, claims, &freed(state, inspected, holds))?;
    holds.end(changes);
    put_consumers(state, at, inspected, holds, changes);
    for provider in providers {
        let place = state.place_by_id(provider).expect(FOUND);
        changes.push(ExistingProvider::new(state, place).bump(at));
    }
    Ok(())
}

/// The claims of one consumer, which are contiguous. Uses binary search, since a request may
/// contain many thousands of claims.
pub(super) fn claims_of(claims: &[Claim], index: usize) -> &[Claim] {
    let from = claims.partition_point(|claim| claim.consumer < index);
    let to = claims.partition_point(|claim| claim.consumer <= index);
    &claims[from..to]
}

/// Checks that every provider has an inventory of at least one of the request's classes.
fn check_inventories(
    state: &State,
    claims: &[Claim],
    providers: &BTreeSet<ProviderId>,
) -> Result<(), Refusal> {
    let classes: BTreeSet<_> = claims.iter().map(|claim| claim.class).collect();
    let nodes = providers
        .iter()
        .map(|id| state.node_by_id(*id).expect(FOUND));
    let without: BTreeSet<_> = nodes
        .filter(|node| {
            let mut stocks = node.inventories.iter();
            !stocks.any(|stock| classes.contains(&stock.class))
        })
        .map(|node| node.uuid)
        .collect();
    let name = |id: &ResourceClassId| state.resource_class_name(*id).clone();
    ensure(without.is_empty(), || {
        let (classes, without) = (classes.iter().map(name), without.into_iter());
        Refusal::AllocationWithoutInventory(classes.collect(), without.collect())
    })
}

/// The current allocations of the request's consumers and of the holds that it ends, which are
/// released first.
fn freed(state: &State, inspected: &Inspected<'_>, holds: &HoldUpdate) -> Units {
    let mut freed = Units::new();
    let consumers = inspected.consumers.iter().enumerate();
    let replaced = consumers.filter(|(index, _)| !claims_of(&inspected.claims, *index).is_empty());
    let replaced = replaced.map(|(_, consumer)| &consumer.consumer);
    for consumer in replaced.chain(&holds.ended) {
        let held = state.consumers.row(consumer);
        for amount in held.into_iter().flat_map(|row| &row.allocations) {
            let key = (amount.provider, amount.class);
            *freed.entry(key).or_default() += amount.units;
        }
    }
    freed
}

/// Checks each amount against min_unit, max_unit and step_size, then the sum of the amounts so far
/// against the capacity. A sum above the capacity is accepted if it does not exceed the usage
/// before the request.
fn check_amounts(state: &State, claims: &[Claim], freed: &Units) -> Result<(), Refusal> {
    let mut asked = Units::new();
    for claim in claims.iter().filter(|claim| claim.amount > 0) {
        let node = state.node_by_id(claim.provider).expect(FOUND);
        let provider = node.uuid;
        let resource_class = || state.resource_class_name(claim.class).clone();
        let stock = node.stock(claim.class).ok_or_else(|| {
            Refusal::AllocationWithoutInventory(vec![resource_class()], vec![provider])
        })?;
        let key = (claim.provider, claim.class);
        let freed = freed.get(&key).copied().unwrap_or(0);
        let rest = stock
            .used
            .checked_sub(freed)
            .expect("allocations are part of the usage");
        // The amount comes from the client and is not checked yet, so the sum could overflow.
        let asked = asked.entry(key).or_default();
        *asked = u64::saturating_add(*asked, claim.amount);
        let sum = rest.saturating_add(*asked);
        let within_units = stock.inventory.permits_amount(claim.amount);
        ensure(within_units, || {
            Refusal::AllocationConstraints(provider, resource_class())
        })?;
        let within_capacity = sum as f64 <= stock.inventory.capacity_exact();
        ensure(within_capacity || sum <= stock.used, || {
            Refusal::AllocationCapacity(provider, resource_class())
        })?;
    }
    Ok(())
}

/// The requested and the free units of an inventory.
pub(super) fn shortage(
    state: &State,
    inspected: &Inspected<'_>,
    holds: &HoldUpdate,
    provider: ProviderUuid,
    resource_class: &ResourceClassName,
) -> Option<Shortage> {
    let node = state.node(state.place(&provider)?);
    let stock = node.stock(state.resource_class_id(resource_class)?)?;
    let key = (node.id, stock.class);
    let freed = freed(state, inspected, holds)
        .get(&key)
        .copied()
        .unwrap_or(0);
    let of_stock = |claim: &&Claim| (claim.provider, claim.class) == key;
    let claims = inspected.claims.iter().filter(of_stock);
    Some(Shortage {
        requested: claims
            .map(|claim| claim.amount)
            .fold(0, u64::saturating_add),
        free: stock.inventory.free(stock.used.saturating_sub(freed)),
    })
}

/// Increments the generation of each consumer with claims, or deletes the consumer if no
/// allocations remain. A consumer without claims keeps its generation, and is created if it is new.
fn put_consumers(
    state: &State,
    at: Timestamp,
    inspected: &Inspected<'_>,
    holds: &HoldUpdate,
    changes: &mut Changes,
) {
    for (index, consumer) in inspected.consumers.iter().enumerate() {
        let name = &consumer.consumer;
        let old = state.consumers.row(name);
        let mut row = consumers::row(state, consumer, at);
        let mine = claims_of(&inspected.claims, index);
        if !mine.is_empty() {
            row.generation = row.generation.next();
            row.updated_at = at;
            let held = mine.iter().filter(|claim| claim.amount > 0);
            row.allocations = held.map(Claim::held).collect();
            if let WrittenHold::Set(hold) = &holds.written {
                row.hold.clone_from(hold);
            }
            if row.allocations.is_empty() {
                if old.is_some() {
                    changes.push(Change::Delete(RowKey::Consumer(name.clone())));
                }
                continue;
            }
        }
        if old.is_none_or(|old| **old != row) {
            changes.push(Change::PutConsumer(name.clone(), row));
        }
    }
}
