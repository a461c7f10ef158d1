//! Checks of the consumers and providers in a request, before any claim.

use std::collections::BTreeSet;

use super::{Refused, ensure, names};
use crate::command::{ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate};
use crate::outcome::Refusal;
use crate::state::State;
use crate::state::change::{Amount, Change, ConsumerRow, ProviderId, ResourceClassId};
use crate::types::{ConsumerTypeName, ConsumerUuid, Generation, Timestamp};

/// One amount that a consumer requests from a provider. A consumer that releases all allocations
/// has claims with the amount 0 for its current providers.
#[derive(Clone, Copy)]
pub(super) struct Claim {
    /// Index into [`Inspected::consumers`].
    pub(super) consumer: usize,
    pub(super) provider: ProviderId,
    pub(super) class: ResourceClassId,
    pub(super) amount: u64,
}

impl Claim {
    pub(super) fn held(&self) -> Amount {
        Amount {
            provider: self.provider,
            class: self.class,
            units: self.amount,
        }
    }
}

/// A request with checked consumers and providers.
#[derive(Default)]
pub(super) struct Inspected<'a> {
    pub(super) consumers: Vec<&'a ConsumerAllocations>,
    /// The claims in the order of the request.
    pub(super) claims: Vec<Claim>,
    /// The refusal of the first unknown class. Many other checks come before this refusal.
    pub(super) unknown_class: Option<Refusal>,
}

/// Checks the generations of all consumers, then the existence of all providers.
///
/// If a provider is unknown, the request's new consumers are still created, with generation 0 and
/// without allocations, as upstream does: it creates consumers before it looks up the providers.
pub(super) fn inspect<'a>(
    state: &State,
    at: Timestamp,
    consumers: &'a [ConsumerAllocations],
) -> Result<Inspected<'a>, Box<Refused>> {
    let consumers = keep_last_per_key(consumers, |consumer| &consumer.consumer);
    for consumer in &consumers {
        check_generation(state, &consumer.consumer, consumer.generation)?;
    }
    let mut inspected = Inspected::default();
    for (index, consumer) in consumers.iter().enumerate() {
        if let Err(refusal) = inspected.add_claims(state, index, consumer) {
            let is_new = |new: &&ConsumerAllocations| state.consumers.row(&new.consumer).is_none();
            let new = consumers.into_iter().filter(is_new);
            let changes = new
                .map(|new| Change::PutConsumer(new.consumer.clone(), row(state, new, at)))
                .collect();
            return Err(Box::new(Refused { refusal, changes }));
        }
    }
    Ok(Inspected {
        consumers,
        ..inspected
    })
}

pub(super) fn check_generation(
    state: &State,
    consumer: &ConsumerUuid,
    expected: ConsumerGeneration,
) -> Result<(), Refusal> {
    let given = match expected {
        ConsumerGeneration::Unchecked => return Ok(()),
        ConsumerGeneration::New => None,
        ConsumerGeneration::Expect(generation) => Some(generation),
    };
    let row = state.consumers.row(consumer);
    let actual = row.map(|row| row.generation);
    ensure(given == actual, || Refusal::ConsumerGenerationConflict {
        consumer: consumer.clone(),
        given,
        actual,
    })
}

impl Inspected<'_> {
    fn add_claims(
        &mut self,
        state: &State,
        index: usize,
        consumer: &ConsumerAllocations,
    ) -> Result<(), Refusal> {
        if consumer.allocations.is_empty() {
            let held = state.consumers.row(&consumer.consumer);
            let claim = |held: &Amount| Claim {
                consumer: index,
                provider: held.provider,
                class: held.class,
                amount: 0,
            };
            let held = held.into_iter().flat_map(|row| &row.allocations);
            self.claims.extend(held.map(claim));
        }
        for asked in keep_last_per_key(&consumer.allocations, |asked| &asked.provider) {
            let place = state
                .place_given(&asked.provider)
                .ok_or_else(|| Refusal::AllocationProviderNotFound(asked.provider.clone()))?;
            for (name, amount) in &asked.resources {
                match names::class_id(state, name) {
                    Ok(class) => self.claims.push(Claim {
                        consumer: index,
                        provider: state.node(place).id,
                        class,
                        amount: *amount,
                    }),
                    Err(refusal) => drop(self.unknown_class.get_or_insert(refusal)),
                }
            }
        }
        Ok(())
    }
}

/// The type of a consumer after the request.
pub(super) fn new_type<'a>(
    state: &'a State,
    consumer: &'a ConsumerAllocations,
) -> Option<&'a ConsumerTypeName> {
    match &consumer.consumer_type {
        ConsumerTypeUpdate::Keep => {
            let old = state.consumers.row(&consumer.consumer)?;
            old.consumer_type.as_ref()
        }
        ConsumerTypeUpdate::Set(name) => Some(name),
    }
}

/// The new row of a consumer, but with its current allocations, hold and generation (none and 0 for
/// a new consumer).
pub(super) fn row(state: &State, consumer: &ConsumerAllocations, at: Timestamp) -> ConsumerRow {
    let old = state.consumers.row(&consumer.consumer);
    ConsumerRow {
        generation: old.map_or(Generation(0), |old| old.generation),
        project: consumer.project.clone(),
        user: consumer.user.clone(),
        consumer_type: new_type(state, consumer).cloned(),
        allocations: old.map(|old| old.allocations.clone()).unwrap_or_default(),
        updated_at: old.map_or(at, |old| old.updated_at),
        hold: old.and_then(|old| old.hold.clone()),
    }
}

/// Whether a consumer is as this request leaves it: the requested owner, type and allocations, no
/// hold, and the generation after the one that the request expects.
pub(super) fn is_as_requested(state: &State, consumer: &ConsumerAllocations) -> bool {
    let expected = match consumer.generation {
        ConsumerGeneration::Unchecked => return false,
        ConsumerGeneration::New => Generation(0),
        ConsumerGeneration::Expect(generation) => generation,
    };
    match state.consumers.row(&consumer.consumer) {
        Some(current) => {
            current.generation == expected.next()
                && current.hold.is_none()
                && has_as_requested(state, consumer)
        }
        // A request without allocations deletes its consumer.
        None => consumer.allocations.is_empty(),
    }
}

/// Whether a consumer has the requested owner, type and allocations, as a hold or not.
pub(super) fn has_as_requested(state: &State, consumer: &ConsumerAllocations) -> bool {
    let Some(current) = state.consumers.row(&consumer.consumer) else {
        return false;
    };
    let mut inspected = Inspected::default();
    let added = inspected.add_claims(state, 0, consumer);
    if added.is_err() || inspected.unknown_class.is_some() {
        return false;
    }
    let requested = ConsumerRow {
        allocations: inspected.claims.iter().map(Claim::held).collect(),
        ..row(state, consumer, current.updated_at)
    };
    **current == requested
}

/// Keeps the last of several entries with the same key, as Python's JSON parser, and so upstream,
/// does with repeated members.
pub(super) fn keep_last_per_key<T, K: Ord>(entries: &[T], key: impl Fn(&T) -> &K) -> Vec<&T> {
    if entries.len() < 2 {
        return entries.iter().collect();
    }
    let mut seen = BTreeSet::new();
    let from_behind = entries.iter().rev();
    let mut kept: Vec<_> = from_behind
        .filter(|entry| seen.insert(key(entry)))
        .collect();
    kept.reverse();
    kept
}
