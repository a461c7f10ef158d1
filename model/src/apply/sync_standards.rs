//! Standard resource classes and traits of the proposing binary

use std::collections::BTreeSet;

use super::Decision;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, Changes, NameRow, ResourceClassId, TraitId};
use crate::types::{ResourceClassName, Timestamp, TraitName};

/// Makes what is missing, and removes nothing: an older binary's shorter list takes nothing away.
pub(super) fn sync_standards(
    state: &State,
    at: Timestamp,
    resource_classes: &[ResourceClassName],
    traits: &BTreeSet<TraitName>,
) -> Decision {
    let mut counters = state.counters();
    let mut changes = Changes::new();
    let mut made = BTreeSet::new();
    for name in resource_classes {
        if state.resource_class_id(name).is_some() || !made.insert(name) {
            continue;
        }
        let id = ResourceClassId(counters.resource_class);
        counters.resource_class = id.0.checked_add(1).ok_or(Refusal::IdsExhausted)?;
        let row = NameRow {
            name: name.clone(),
            updated_at: at,
        };
        changes.push(Change::PutResourceClass(id, row));
    }
    for name in traits.iter().filter(|name| state.trait_id(name).is_none()) {
        let id = TraitId(counters.trait_);
        counters.trait_ = id.0.checked_add(1).ok_or(Refusal::IdsExhausted)?;
        changes.push(Change::PutTrait(
            id,
            NameRow {
                name: name.clone(),
                updated_at: at,
            },
        ));
    }
    if counters != state.counters() {
        changes.push(Change::PutCounters(counters));
    }
    Ok((Reply::Done, changes))
}
