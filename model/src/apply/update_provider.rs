//! `PUT /resource_providers/{uuid}`

use super::Decision;
use super::provider::{self, Found};
use crate::command::ParentUpdate;
use crate::outcome::{Provider, Refusal, Reply};
use crate::state::change::{Change, Changes};
use crate::state::{Place, State};
use crate::types::{GivenUuid, ProviderName, ProviderUuid, Timestamp};

/// Renames a provider and moves it, with all below it. The generation stays as it is. The parent
/// is looked at before a duplicate name is.
pub(super) fn update_provider(
    state: &State,
    at: Timestamp,
    uuid: &ProviderUuid,
    name: &ProviderName,
    parent: &ParentUpdate,
    may_reparent: bool,
) -> Decision {
    let found = provider::find(state, uuid)?;
    let tree = state
        .tree(found.place.tree)
        .expect("a place names a tree that exists");
    let old = tree.row(found.place.node);
    let parent = match parent {
        ParentUpdate::Keep => old.parent.and_then(|id| state.place_by_id(id)),
        ParentUpdate::Clear if old.parent.is_some() && !may_reparent => {
            return Err(Refusal::ReparentForbidden(*uuid).into());
        }
        ParentUpdate::Clear => None,
        ParentUpdate::Set(given) => Some(new_parent(state, &found, given, may_reparent)?),
    };
    if state.id_of_name(name).is_some_and(|id| id != found.node.id) {
        return Err(Refusal::DuplicateProviderName(name.clone()).into());
    }
    let mut row = old.clone();
    row.name = name.clone();
    row.parent = parent.map(|place| state.node(place).id);
    let mut changes = Changes::new();
    if row != old {
        row.updated_at = at;
        changes.push(Change::PutProvider(found.node.id, row.clone()));
    }
    let reply = Reply::Provider(Provider {
        uuid: *uuid,
        name: row.name,
        generation: row.generation,
        parent: parent.map(|place| state.node(place).uuid),
        root: parent.map_or(*uuid, |place| state.provider_at(place).root),
        modified: row.updated_at,
    });
    Ok((reply, changes))
}

/// A first parent may be set at any time; another one only from 1.37 on; one below the provider
/// itself never.
fn new_parent(
    state: &State,
    found: &Found<'_>,
    given: &GivenUuid,
    may_reparent: bool,
) -> Result<Place, Refusal> {
    let parent = state
        .place_given(given)
        .ok_or_else(|| Refusal::ParentNotFound(given.clone()))?;
    let another = found.node.parent.is_some_and(|old| {
        Place {
            tree: found.place.tree,
            node: old,
        } != parent
    });
    if another && !may_reparent {
        return Err(Refusal::ReparentForbidden(found.node.uuid));
    }
    if found.spans(parent) {
        return Err(Refusal::ParentLoop(found.node.uuid));
    }
    Ok(parent)
}
