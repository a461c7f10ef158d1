//! `POST /resource_classes`

use super::Decision;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, Counters, NameRow, ResourceClassId};
use crate::types::{ResourceClassName, Timestamp};

/// Makes a custom class that does not exist yet.
pub(super) fn create_resource_class(
    state: &State,
    at: Timestamp,
    name: &ResourceClassName,
) -> Decision {
    if state.resource_class_id(name).is_some() {
        return Err(Refusal::ResourceClassExists(name.clone()).into());
    }
    if !name.is_custom() {
        return Err(Refusal::ResourceClassStandardUpdate(name.clone()).into());
    }
    let counters = state.counters();
    let next = counters
        .resource_class
        .checked_add(1)
        .ok_or(Refusal::IdsExhausted)?;
    let row = NameRow {
        name: name.clone(),
        updated_at: at,
    };
    let changes = vec![
        Change::PutResourceClass(ResourceClassId(counters.resource_class), row),
        Change::PutCounters(Counters {
            resource_class: next,
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
