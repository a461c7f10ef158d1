//! Which consumers a request is about, before anything is taken.

use std::collections::BTreeSet;

use super::{Refused, ensure, names};
use crate::command::{ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate};
use crate::outcome::Refusal;
use crate::state::State;
use crate::state::change::{Amount, Change, ConsumerRow, ProviderId, ResourceClassId};
use crate::types::{Generation, Timestamp};

/// One amount that one consumer asks of one provider. A provider whose consumer gives back all is
/// named too, with the amount 0.
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

/// A request of which consumers and providers are known to be right.
#[derive(Default)]
pub(super) struct Inspected<'a> {
    pub(super) consumers: Vec<&'a ConsumerAllocations>,
    /// In the order of the request.
    pub(super) claims: Vec<Claim>,
    /// The first class that does not exist. Much else is refused before it.
    pub(super) unknown_class: Option<Refusal>,
}

/// Checks the generations of all consumers, then whether all providers exist.
///
/// An unknown provider leaves the request's new consumers behind, at generation 0 and without
/// allocations, as upstream does: it makes them before it looks for the providers.
pub(super) fn inspect<'a>(
    state: &State,
    at: Timestamp,
    consumers: &'a [ConsumerAllocations],
) -> Result<Inspected<'a>, Box<Refused>> {
    let consumers = last_of_each(consumers, |consumer| &consumer.consumer);
    for consumer in &consumers {
        check_generation(state, consumer)?;
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

fn check_generation(state: &State, consumer: &ConsumerAllocations) -> Result<(), Refusal> {
    let given = match consumer.generation {
        ConsumerGeneration::Unchecked => return Ok(()),
        ConsumerGeneration::New => None,
        ConsumerGeneration::Expect(generation) => Some(generation),
    };
    let row = state.consumers.row(&consumer.consumer);
    let actual = row.map(|row| row.generation);
    ensure(given == actual, || Refusal::ConsumerGenerationConflict {
        consumer: consumer.consumer.clone(),
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
        for asked in last_of_each(&consumer.allocations, |asked| &asked.provider) {
            let place = state.place_given(&asked.provider);
            let place =
                place.ok_or_else(|| Refusal::AllocationProviderNotFound(asked.provider.clone()))?;
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

/// A consumer as the request wants it, but for allocations and generation, which are as before
/// (none and 0 for a new one).
pub(super) fn row(state: &State, consumer: &ConsumerAllocations, at: Timestamp) -> ConsumerRow {
    let old = state.consumers.row(&consumer.consumer);
    let consumer_type = match &consumer.consumer_type {
        ConsumerTypeUpdate::Keep => old.and_then(|old| old.consumer_type.clone()),
        ConsumerTypeUpdate::Set(name) => Some(name.clone()),
    };
    ConsumerRow {
        generation: old.map_or(Generation(0), |old| old.generation),
        project: consumer.project.clone(),
        user: consumer.user.clone(),
        consumer_type,
        allocations: old.map(|old| old.allocations.clone()).unwrap_or_default(),
        updated_at: old.map_or(at, |old| old.updated_at),
    }
}

/// Of several entries with one key only the last, as in a JSON object.
fn last_of_each<T, K: Ord>(entries: &[T], key: impl Fn(&T) -> &K) -> Vec<&T> {
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
