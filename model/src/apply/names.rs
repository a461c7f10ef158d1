//! Creation of traits and resource classes, custom and standard ones.

use std::collections::BTreeSet;

use super::{Decide, Decision};
use crate::command::SyncStandards;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, Changes, Counters, NameRow, ResourceClassId, TraitId};
use crate::types::{Given, ResourceClassName, Timestamp, TraitName};

/// A name with a row and a dense id.
pub(super) trait Name: Clone {
    /// The counter with the next free id.
    fn next_id(counters: &mut Counters) -> &mut u32;

    fn put(id: u32, row: NameRow<Self>) -> Change;
}

impl Name for TraitName {
    fn next_id(counters: &mut Counters) -> &mut u32 {
        &mut counters.trait_
    }

    fn put(id: u32, row: NameRow<Self>) -> Change {
        Change::PutTrait(TraitId(id), row)
    }
}

impl Name for ResourceClassName {
    fn next_id(counters: &mut Counters) -> &mut u32 {
        &mut counters.resource_class
    }

    fn put(id: u32, row: NameRow<Self>) -> Change {
        Change::PutResourceClass(ResourceClassId(id), row)
    }
}

/// Creates a name with the next id. The caller puts the counters.
pub(super) fn make<N: Name>(
    name: &N,
    at: Timestamp,
    counters: &mut Counters,
    changes: &mut Changes,
) -> Result<(), Refusal> {
    let next = N::next_id(counters);
    let id = *next;
    *next = id.checked_add(1).ok_or(Refusal::IdsExhausted)?;
    let row = NameRow {
        name: name.clone(),
        updated_at: at,
    };
    changes.push(N::put(id, row));
    Ok(())
}

/// Creates a new name that a client requested.
pub(super) fn create<N: Name>(state: &State, at: Timestamp, name: &N) -> Decision {
    let mut counters = state.counters();
    let mut changes = Changes::new();
    make(name, at, &mut counters, &mut changes)?;
    changes.push(Change::PutCounters(counters));
    Ok((reply(true, at), changes))
}

/// Returns the reply for an existing name that a client requested.
pub(super) fn keep(modified: Timestamp) -> Decision {
    Ok((reply(false, modified), Changes::new()))
}

pub(super) fn reply(created: bool, modified: Timestamp) -> Reply {
    Reply::Named { created, modified }
}

/// The id of a class, or a refusal if the class is unknown.
pub(super) fn class_id(
    state: &State,
    name: &Given<ResourceClassName>,
) -> Result<ResourceClassId, Refusal> {
    let id = state.class_given(name);
    id.ok_or_else(|| Refusal::ResourceClassNotFound(name.clone()))
}

/// Creates missing names and deletes none, so the shorter list of an older binary has no effect.
impl Decide for SyncStandards {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let mut counters = state.counters();
        let mut changes = Changes::new();
        let mut made = BTreeSet::new();
        for name in &self.resource_classes {
            if state.resource_class_id(name).is_none() && made.insert(name) {
                make(name, at, &mut counters, &mut changes)?;
            }
        }
        for name in &self.traits {
            if state.trait_id(name).is_none() {
                make(name, at, &mut counters, &mut changes)?;
            }
        }
        if counters != state.counters() {
            changes.push(Change::PutCounters(counters));
        }
        Ok((Reply::Done, changes))
    }
}
