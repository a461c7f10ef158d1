//! Which consumers a request is about, before anything is taken.

use std::collections::BTreeSet;

use super::Refused;
use crate::command::{ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate};
use crate::outcome::Refusal;
use crate::state::State;
use crate::state::change::{Amount, Change, ConsumerRow, ProviderId, ResourceClassId};
use crate::types::{Generation, Given, ResourceClassName, Timestamp};

/// One amount that one consumer asks of one provider. A provider whose consumer gives back all is
/// named too, with the amount 0.
pub(super) struct Line<'a> {
    /// Index into [`Request::consumers`].
    pub(super) consumer: usize,
    pub(super) provider: ProviderId,
    pub(super) class: Class<'a>,
    pub(super) amount: u64,
}

/// A class by name, which may not exist, or one that the consumer holds already.
pub(super) enum Class<'a> {
    Asked(&'a Given<ResourceClassName>),
    Held(ResourceClassId),
}

/// A request of which consumers and providers are known to be right.
pub(super) struct Request<'a> {
    pub(super) consumers: Vec<&'a ConsumerAllocations>,
    /// In the order of the request.
    pub(super) lines: Vec<Line<'a>>,
}

/// Checks the generations of all consumers, then whether all providers exist.
///
/// An unknown provider leaves the request's new consumers behind, at generation 0 and without
/// allocations, as upstream does: it makes them before it looks for the providers.
pub(super) fn inspect<'a>(
    state: &State,
    at: Timestamp,
    consumers: &'a [ConsumerAllocations],
) -> Result<Request<'a>, Box<Refused>> {
    let consumers = last_of_each(consumers, |consumer| &consumer.consumer);
    for consumer in &consumers {
        check_generation(state, consumer)?;
    }
    let mut lines = Vec::new();
    for (index, consumer) in consumers.iter().enumerate() {
        if let Err(refusal) = lines_of(state, index, consumer, &mut lines) {
            let new = consumers
                .iter()
                .filter(|new| state.consumers.row(&new.consumer).is_none());
            let changes = new
                .map(|new| Change::PutConsumer(new.consumer.clone(), row(state, new, at)))
                .collect();
            return Err(Box::new(Refused { refusal, changes }));
        }
    }
    Ok(Request { consumers, lines })
}

fn check_generation(state: &State, consumer: &ConsumerAllocations) -> Result<(), Refusal> {
    let given = match consumer.generation {
        ConsumerGeneration::Unchecked => return Ok(()),
        ConsumerGeneration::New => None,
        ConsumerGeneration::Expect(generation) => Some(generation),
    };
    let actual = state
        .consumers
        .row(&consumer.consumer)
        .map(|row| row.generation);
    if given == actual {
        return Ok(());
    }
    let consumer = consumer.consumer.clone();
    Err(Refusal::ConsumerGenerationConflict {
        consumer,
        given,
        actual,
    })
}

fn lines_of<'a>(
    state: &State,
    index: usize,
    consumer: &'a ConsumerAllocations,
    lines: &mut Vec<Line<'a>>,
) -> Result<(), Refusal> {
    if consumer.allocations.is_empty() {
        let held = state.consumers.row(&consumer.consumer);
        let line = |held: &Amount| Line {
            consumer: index,
            provider: held.provider,
            class: Class::Held(held.class),
            amount: 0,
        };
        lines.extend(held.into_iter().flat_map(|row| &row.allocations).map(line));
        return Ok(());
    }
    for asked in last_of_each(&consumer.allocations, |asked| &asked.provider) {
        let place = state.place_given(&asked.provider);
        let place =
            place.ok_or_else(|| Refusal::AllocationProviderNotFound(asked.provider.clone()))?;
        let provider = state.node(place).id;
        let line = |(name, amount): (&'a Given<ResourceClassName>, &u64)| Line {
            consumer: index,
            provider,
            class: Class::Asked(name),
            amount: *amount,
        };
        lines.extend(asked.resources.iter().map(line));
    }
    Ok(())
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
    let mut kept: Vec<_> = entries
        .iter()
        .rev()
        .filter(|entry| seen.insert(key(entry)))
        .collect();
    kept.reverse();
    kept
}
