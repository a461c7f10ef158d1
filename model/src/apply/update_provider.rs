//! `PUT /resource_providers/{uuid}`

use super::provider::{self, Found};
use super::{Decide, Decision};
use crate::command::{ParentUpdate, UpdateProvider};
use crate::outcome::{Provider, Refusal, Reply};
use crate::state::change::{Change, Changes, ProviderRow};
use crate::state::tree::TreeNumber;
use crate::state::{Place, State};
use crate::types::{Given, ProviderUuid, Timestamp};

/// Renames a provider and moves it, with all below it. Generations stay as they are. A provider that
/// gets another root counts as changed, as upstream keeps the root in its row. The parent is looked at
/// before a duplicate name is.
impl Decide for UpdateProvider {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = provider::find(state, &self.uuid)?;
        let tree = state
            .tree(found.place.tree)
            .expect("a place names a tree that exists");
        let old = tree.row(found.place.node);
        let parent = match &self.parent {
            ParentUpdate::Keep => old.parent.map(|id| {
                let place = state.place_by_id(id);
                place.expect("a provider's parent is there")
            }),
            ParentUpdate::Clear if old.parent.is_some() && !self.may_reparent => {
                return Err(Refusal::ReparentForbidden(self.uuid).into());
            }
            ParentUpdate::Clear => None,
            ParentUpdate::Set(given) => Some(self.new_parent(state, &found, given)?),
        };
        if state
            .id_of_name(&self.name)
            .is_some_and(|id| id != found.node.id)
        {
            return Err(Refusal::DuplicateProviderName(self.name.clone()).into());
        }
        let mut row = old.clone();
        row.name = self.name.clone();
        row.parent = parent.map(|place| state.node(place).id);
        let mut changes = Changes::new();
        if row != old {
            row.updated_at = at;
            changes.push(Change::PutProvider(found.node.id, row.clone()));
        }
        let tree_after = parent.map_or(TreeNumber(found.node.id.0), |place| place.tree);
        if tree_after != found.place.tree {
            changes.extend(found.descendants().map(|(id, row)| {
                let updated_at = at;
                Change::PutProvider(id, ProviderRow { updated_at, ..row })
            }));
        }
        let reply = Reply::Provider(Provider {
            uuid: self.uuid,
            name: row.name,
            generation: row.generation,
            parent: parent.map(|place| state.node(place).uuid),
            root: parent.map_or(self.uuid, |place| state.provider_at(place).root),
            modified: row.updated_at,
        });
        Ok((reply, changes))
    }
}

impl UpdateProvider {
    /// A first parent may be set at any time; another one only from 1.37 on; one below the
    /// provider itself never.
    fn new_parent(
        &self,
        state: &State,
        found: &Found<'_>,
        given: &Given<ProviderUuid>,
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
        if another && !self.may_reparent {
            return Err(Refusal::ReparentForbidden(found.node.uuid));
        }
        if found.spans(parent) {
            return Err(Refusal::ParentLoop(found.node.uuid));
        }
        Ok(parent)
    }
}
