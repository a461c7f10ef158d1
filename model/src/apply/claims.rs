//! Taking: whether the amounts fit, and what changes if they do.

use std::collections::{BTreeMap, BTreeSet};

use super::consumers::{self, Class, Line, Request};
use super::inventories;
use super::providers::Found;
use crate::outcome::Refusal;
use crate::state::State;
use crate::state::change::{Amount, Change, Changes, ConsumerRow, ProviderId, ResourceClassId};
use crate::state::tree::{Node, Stock};
use crate::types::{ConsumerUuid, Timestamp};

/// A line with its class looked up.
#[derive(Clone, Copy)]
struct Claim {
    consumer: usize,
    provider: ProviderId,
    class: ResourceClassId,
    amount: u64,
}

impl Claim {
    fn held(&self) -> Amount {
        Amount {
            provider: self.provider,
            class: self.class,
            units: self.amount,
        }
    }
}

/// Providers that clients name were looked up first, and those of which something is held stay.
const FOUND: &str = "a claim is about a provider that is there";

/// Units by provider and class.
type Units = BTreeMap<(ProviderId, ResourceClassId), u64>;

/// Replaces what the consumers hold by what they ask for, all or nothing: unknown classes first,
/// then missing inventories, then, line by line, units and capacity.
pub(super) fn claim(
    state: &State,
    at: Timestamp,
    request: &Request<'_>,
    changes: &mut Changes,
) -> Result<(), Refusal> {
    let lines = request.lines.iter();
    let claims = lines
        .map(|line| look_up(state, line))
        .collect::<Result<Vec<_>, _>>()?;
    check_inventories(state, &claims)?;
    check_amounts(state, &claims, &freed(state, request, &claims))?;
    put_consumers(state, at, request, &claims, changes);
    let providers: BTreeSet<_> = claims.iter().map(|claim| claim.provider).collect();
    for provider in providers {
        let place = state.place_by_id(provider).expect(FOUND);
        changes.push(Found::at(state, place).bump(at));
    }
    Ok(())
}

fn look_up(state: &State, line: &Line<'_>) -> Result<Claim, Refusal> {
    let class = match line.class {
        Class::Asked(name) => inventories::class_id(state, name)?,
        Class::Held(id) => id,
    };
    let Line {
        consumer,
        provider,
        amount,
        ..
    } = *line;
    Ok(Claim {
        consumer,
        provider,
        class,
        amount,
    })
}

/// The claims of one consumer, which stand together: a request may name many thousands.
fn of_consumer(claims: &[Claim], index: usize) -> &[Claim] {
    let from = claims.partition_point(|claim| claim.consumer < index);
    let to = claims.partition_point(|claim| claim.consumer <= index);
    &claims[from..to]
}

/// Every provider has an inventory of at least one of the request's classes, whichever.
fn check_inventories(state: &State, claims: &[Claim]) -> Result<(), Refusal> {
    let classes: BTreeSet<_> = claims.iter().map(|claim| claim.class).collect();
    let providers: BTreeSet<_> = claims.iter().map(|claim| claim.provider).collect();
    let without: BTreeSet<_> = providers
        .into_iter()
        .map(|provider| state.node_by_id(provider).expect(FOUND))
        .filter(|node| {
            !node
                .inventories
                .iter()
                .any(|stock| classes.contains(&stock.class))
        })
        .map(|node| node.uuid)
        .collect();
    if without.is_empty() {
        return Ok(());
    }
    Err(Refusal::AllocationWithoutInventory {
        resource_classes: classes
            .into_iter()
            .map(|id| state.resource_class_name(id).clone())
            .collect(),
        providers: without.into_iter().collect(),
    })
}

/// What the request's consumers hold, and so give back first.
fn freed(state: &State, request: &Request<'_>, claims: &[Claim]) -> Units {
    let mut freed = Units::new();
    for (index, consumer) in request.consumers.iter().enumerate() {
        if of_consumer(claims, index).is_empty() {
            continue;
        }
        let held = state.consumers.row(&consumer.consumer);
        for amount in held.into_iter().flat_map(|row| &row.allocations) {
            let key = (amount.provider, amount.class);
            *freed.entry(key).or_default() += amount.units;
        }
    }
    freed
}

fn check_amounts(state: &State, claims: &[Claim], freed: &Units) -> Result<(), Refusal> {
    let mut asked = Units::new();
    for claim in claims.iter().filter(|claim| claim.amount > 0) {
        let node = state.node_by_id(claim.provider).expect(FOUND);
        let Some(stock) = node.stock(claim.class) else {
            return Err(Refusal::AllocationWithoutInventory {
                resource_classes: vec![state.resource_class_name(claim.class).clone()],
                providers: vec![node.uuid],
            });
        };
        let key = (claim.provider, claim.class);
        let freed = freed.get(&key).copied().unwrap_or(0);
        let rest = stock.used.checked_sub(freed);
        let rest = rest.expect("what consumers hold is part of what is taken");
        // The amount is the client's, and not yet known to be within bounds.
        let asked = asked.entry(key).or_default();
        *asked = u64::saturating_add(*asked, claim.amount);
        let sum = rest.saturating_add(*asked);
        check_amount(state, node, stock, claim.amount, sum)?;
    }
    Ok(())
}

/// One amount against its units, then the sum with all before it against the capacity. More than
/// the capacity is let through if it is no more than was taken before.
fn check_amount(
    state: &State,
    node: &Node,
    stock: &Stock,
    amount: u64,
    sum: u64,
) -> Result<(), Refusal> {
    let within_units = stock.inventory.permits_amount(amount);
    let within_capacity = sum as f64 <= stock.inventory.capacity_exact();
    let no_worse = sum <= stock.used;
    if within_units && (within_capacity || no_worse) {
        return Ok(());
    }
    let provider = node.uuid;
    let resource_class = state.resource_class_name(stock.class).clone();
    Err(if within_units {
        Refusal::AllocationCapacity {
            provider,
            resource_class,
        }
    } else {
        Refusal::AllocationConstraints {
            provider,
            resource_class,
        }
    })
}

/// A consumer that is named by a claim rises by one generation, or goes if it ends with nothing.
/// One that had nothing to give back keeps its generation, and is made if it is new.
fn put_consumers(
    state: &State,
    at: Timestamp,
    request: &Request<'_>,
    claims: &[Claim],
    changes: &mut Changes,
) {
    for (index, consumer) in request.consumers.iter().enumerate() {
        let name: &ConsumerUuid = &consumer.consumer;
        let old = state.consumers.row(name);
        let mut row: ConsumerRow = consumers::row(state, consumer, at);
        let mine = of_consumer(claims, index);
        if !mine.is_empty() {
            row.generation = row.generation.next();
            row.updated_at = at;
            let held = mine.iter().filter(|claim| claim.amount > 0);
            row.allocations = held.map(Claim::held).collect();
            if row.allocations.is_empty() {
                if old.is_some() {
                    changes.push(Change::DeleteConsumer(name.clone()));
                }
                continue;
            }
        }
        if old.is_none_or(|old| **old != row) {
            changes.push(Change::PutConsumer(name.clone(), row));
        }
    }
}
