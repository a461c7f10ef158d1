//! `PUT /traits/{name}`

use super::Decision;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, Changes, Counters, NameRow, TraitId};
use crate::types::{Timestamp, TraitName};

/// Makes a custom trait, unless it exists.
pub(super) fn create_trait(state: &State, at: Timestamp, name: &TraitName) -> Decision {
    if let Some(modified) = state.trait_(name) {
        return Ok((
            Reply::Named {
                created: false,
                modified,
            },
            Changes::new(),
        ));
    }
    if !name.is_custom() {
        return Err(Refusal::TraitStandard(name.clone()).into());
    }
    let counters = state.counters();
    let next = counters
        .trait_
        .checked_add(1)
        .ok_or(Refusal::IdsExhausted)?;
    let row = NameRow {
        name: name.clone(),
        updated_at: at,
    };
    let changes = vec![
        Change::PutTrait(TraitId(counters.trait_), row),
        Change::PutCounters(Counters {
            trait_: next,
            ..counters
        }),
    ];
    Ok((
        Reply::Named {
            created: true,
            modified: at,
        },
        changes,
    ))
}
