//! Commands on resource providers, and helpers for every command that writes to a provider.

use std::collections::BTreeSet;

use super::{Decide, Decision, ensure};
use crate::command::{
    CreateProvider, DeleteProvider, ParentUpdate, ReplaceProviderAggregates, UpdateProvider,
};
use crate::outcome::{Provider, Refusal, Reply};
use crate::state::change::{Change, Changes, ProviderId, ProviderRow, ResourceClassId, RowKey};
use crate::state::tree::{Node, Tree, TreeNumber};
use crate::state::{NodePlace, State};
use crate::types::{Generation, Given, ProviderUuid, ResourceClassName, Timestamp};

/// A provider to write to, in its current state.
#[derive(Clone, Copy)]
pub(super) struct ExistingProvider<'a> {
    state: &'a State,
    pub(super) place: NodePlace,
    pub(super) node: &'a Node,
}

/// Finds the provider in the path of a request.
pub(super) fn find<'a>(
    state: &'a State,
    uuid: &ProviderUuid,
) -> Result<ExistingProvider<'a>, Refusal> {
    let place = state.place(uuid).ok_or(Refusal::ProviderNotFound(*uuid))?;
    Ok(ExistingProvider::new(state, place))
}

impl<'a> ExistingProvider<'a> {
    /// The provider at `place`, which must belong to `state`.
    pub(super) fn new(state: &'a State, place: NodePlace) -> Self {
        Self {
            state,
            place,
            node: state.node(place),
        }
    }

    /// Refuses if the client's generation differs from the current one.
    pub(super) fn check_generation(&self, given: Generation) -> Result<(), Refusal> {
        let actual = self.node.generation;
        ensure(given == actual, || Refusal::ProviderGenerationConflict {
            provider: self.node.uuid,
            given,
            actual,
        })
    }

    /// The name of an existing class.
    pub(super) fn class_name(&self, class: ResourceClassId) -> ResourceClassName {
        self.state.resource_class_name(class).clone()
    }

    fn tree(&self) -> &'a Tree {
        let tree = self.state.tree(self.place.tree);
        tree.expect("a place refers to an existing tree")
    }

    /// The change that writes the provider's row with the next generation.
    pub(super) fn bump(&self, at: Timestamp) -> Change {
        let mut row = self.tree().row(self.place.node);
        row.generation = row.generation.next();
        row.updated_at = at;
        Change::PutProvider(self.node.id, row)
    }

    /// The reply to a write that increments the generation.
    pub(super) fn written(&self, at: Timestamp) -> Reply {
        Reply::ProviderWritten {
            generation: self.node.generation.next(),
            at,
        }
    }

    /// Returns changes that increment the generation.
    pub(super) fn bumped(&self, at: Timestamp, mut changes: Changes) -> Decision {
        changes.push(self.bump(at));
        Ok((self.written(at), changes))
    }

    /// Returns changes that keep the generation.
    pub(super) fn kept(&self, at: Timestamp, changes: Changes) -> Decision {
        let generation = self.node.generation;
        Ok((Reply::ProviderWritten { generation, at }, changes))
    }

    /// The rows of all descendants of the provider.
    pub(super) fn descendants(&self) -> impl Iterator<Item = (ProviderId, ProviderRow)> {
        let tree = self.tree();
        let below = self.place.node + 1..self.node.subtree_end;
        below.map(move |index| (tree.nodes[index as usize].id, tree.row(index)))
    }

    /// Whether a place of the same state is this provider or a descendant.
    pub(super) fn spans(&self, place: NodePlace) -> bool {
        place.tree == self.place.tree
            && (self.place.node..self.node.subtree_end).contains(&place.node)
    }
}

/// The reply with a provider after a write.
fn reply(state: &State, row: &ProviderRow, parent: Option<NodePlace>) -> Reply {
    Reply::Provider(Provider {
        uuid: row.uuid,
        name: row.name.clone(),
        generation: row.generation,
        parent: parent.map(|place| state.node(place).uuid),
        root: parent.map_or(row.uuid, |place| state.provider_at(place).root),
        modified: row.updated_at,
    })
}

/// Finds the parent given in a request.
fn parent(state: &State, given: &Given<ProviderUuid>) -> Result<NodePlace, Refusal> {
    let place = state.place_given(given);
    place.ok_or_else(|| Refusal::ParentNotFound(given.clone()))
}

/// `POST /resource_providers`: creates a provider with generation 0. The parent is checked before
/// duplicates.
impl Decide for CreateProvider {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let (uuid, name) = (self.uuid, &self.name);
        let own_parent = self.parent.as_ref().and_then(Given::valid) == Some(&uuid);
        ensure(!own_parent, || Refusal::ParentLoop(uuid))?;
        let parent = self
            .parent
            .as_ref()
            .map(|given| parent(state, given))
            .transpose()?;
        let is_new = state.place(&uuid).is_none();
        ensure(is_new, || Refusal::DuplicateProviderUuid(uuid))?;
        let is_free = state.providers.id_of_name(name).is_none();
        ensure(is_free, || Refusal::DuplicateProviderName(name.clone()))?;
        let mut counters = state.counters();
        let id = ProviderId(counters.provider);
        counters.provider = id.0.checked_add(1).ok_or(Refusal::IdsExhausted)?;
        let row = ProviderRow {
            uuid,
            name: name.clone(),
            generation: Generation(0),
            parent: parent.map(|place| state.node(place).id),
            created_at: at,
            updated_at: at,
        };
        let reply = reply(state, &row, parent);
        let changes = vec![Change::PutProvider(id, row), Change::PutCounters(counters)];
        Ok((reply, changes))
    }
}

/// `PUT /resource_providers/{uuid}`: renames a provider and moves it with its descendants.
/// Generations do not change. A provider whose root changes counts as modified, since upstream
/// stores the root in the provider's row. The parent is checked before a duplicate name.
impl Decide for UpdateProvider {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = find(state, &self.uuid)?;
        let old = found.tree().row(found.place.node);
        let parent = match &self.parent {
            ParentUpdate::Keep => old.parent.map(|id| {
                let place = state.place_by_id(id);
                place.expect("a provider's parent exists")
            }),
            ParentUpdate::Clear if old.parent.is_some() && !self.may_reparent => {
                return Err(Refusal::ReparentForbidden(self.uuid).into());
            }
            ParentUpdate::Clear => None,
            ParentUpdate::Set(given) => Some(self.new_parent(state, &found, given)?),
        };
        let named = state.providers.id_of_name(&self.name);
        let is_free = named.is_none_or(|id| id == found.node.id);
        ensure(is_free, || {
            Refusal::DuplicateProviderName(self.name.clone())
        })?;
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
        Ok((reply(state, &row, parent), changes))
    }
}

impl UpdateProvider {
    /// A root may always get a parent. An existing parent may be changed from 1.37 on. The new
    /// parent must not be a descendant of the provider.
    fn new_parent(
        &self,
        state: &State,
        found: &ExistingProvider<'_>,
        given: &Given<ProviderUuid>,
    ) -> Result<NodePlace, Refusal> {
        let (uuid, parent) = (found.node.uuid, parent(state, given)?);
        let old = found.node.parent.map(|old| found.place.tree.node(old));
        let another = old.is_some_and(|old| old != parent);
        ensure(!another || self.may_reparent, || {
            Refusal::ReparentForbidden(uuid)
        })?;
        ensure(!found.spans(parent), || Refusal::ParentLoop(uuid))?;
        Ok(parent)
    }
}

/// `DELETE /resource_providers/{uuid}`: deletes a provider with its inventories, traits and
/// aggregates. Children are checked before allocations.
impl Decide for DeleteProvider {
    fn decide(&self, state: &State, _at: Timestamp) -> Decision {
        let found = find(state, &self.uuid)?;
        let has_children = found.node.subtree_end > found.place.node + 1;
        ensure(!has_children, || Refusal::ProviderHasChildren(self.uuid))?;
        ensure(!found.node.in_use(), || Refusal::ProviderInUse(self.uuid))?;
        let id = found.node.id;
        let inventories = found.node.inventories.iter();
        let mut changes: Changes = inventories
            .map(|stock| Change::Delete(RowKey::Inventory(id, stock.class)))
            .collect();
        if !found.node.traits.is_empty() {
            changes.push(Change::PutProviderTraits(id, BTreeSet::new()));
        }
        if !found.node.aggregates.is_empty() {
            changes.push(Change::PutProviderAggregates(id, BTreeSet::new()));
        }
        changes.push(Change::Delete(RowKey::Provider(id)));
        Ok((Reply::Done, changes))
    }
}

/// `PUT /resource_providers/{uuid}/aggregates`: replaces the aggregates of a provider. From 1.19 on
/// the generation is checked and always incremented. Before 1.19 it is neither checked nor
/// incremented.
impl Decide for ReplaceProviderAggregates {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = find(state, &self.provider)?;
        if let Some(generation) = self.generation {
            found.check_generation(generation)?;
        }
        let mut changes = Changes::new();
        if self.aggregates != *found.node.aggregates {
            let (id, aggregates) = (found.node.id, self.aggregates.clone());
            changes.push(Change::PutProviderAggregates(id, aggregates));
        }
        match self.generation {
            Some(_) => found.bumped(at, changes),
            None => found.kept(at, changes),
        }
    }
}
