//! What an entry of the log has changed, so that watchers can follow it, and earlier states can be
//! had again.
//!
//! Of the rows of placement alone: sessions, outcomes, counters, the level, joins and partitions
//! are left out.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::cluster::{Cluster, ClusterChanges};
use crate::command::Stamped;
use crate::state::State;
use crate::state::change::{
    Change, Changes, ProviderId, ProviderRow, ResourceClassId, RowKey, TraitId,
};
use crate::types::{PartitionId, ProviderUuid, ResourceClassName, Timestamp, TraitName};

/// Where what is kept begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Floor {
    /// What later entries have changed is there.
    pub index: u64,
    /// No later command has an earlier stamp.
    pub at: Timestamp,
}

/// What one entry of the log has changed in one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// The place in the log. Of a command that concerns several partitions there is an entry for
    /// each.
    pub index: u64,
    /// The stamp of the command.
    pub at: Timestamp,
    /// Whose rows they are.
    pub partition: PartitionId,
    /// [`Command::name`](crate::Command::name).
    pub verb: Cow<'static, str>,
    /// The request that the command comes from, if that is known.
    pub request_id: Option<Uuid>,
    /// Each row once, in the order of its first change. Rows that are afterwards as they were
    /// before are left out.
    pub rows: Vec<RowChange>,
    /// What the ids in `rows` stand for.
    pub names: Names,
}

/// A row before and after: each is the change that puts it, or that deletes it where it is not
/// there. A set of traits or aggregates that is not there is an empty one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowChange {
    /// Before the entry.
    pub before: Change,
    /// After it.
    pub after: Change,
}

/// What all dense ids in an entry stand for: after it, or before it if they are gone then.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Names {
    /// Providers.
    pub providers: BTreeMap<ProviderId, ProviderUuid>,
    /// Resource classes.
    pub classes: BTreeMap<ResourceClassId, ResourceClassName>,
    /// Traits.
    pub traits: BTreeMap<TraitId, TraitName>,
}

impl LedgerEntry {
    /// What a command changes, by partition: nothing if it changes no row of placement. `before` is
    /// the cluster without the changes.
    pub fn of(
        index: u64,
        stamped: &Stamped,
        before: &Cluster,
        changes: &ClusterChanges,
    ) -> Vec<Self> {
        let of_one = |(partition, changes): &(PartitionId, Changes)| {
            let state = before.partition(*partition);
            let rows = rows_changed(state, changes);
            (!rows.is_empty()).then(|| Self {
                index,
                at: stamped.at,
                partition: *partition,
                verb: stamped.command.name().into(),
                request_id: stamped.request_id,
                names: Names::of(&rows, state),
                rows,
            })
        };
        changes.iter().filter_map(of_one).collect()
    }

    /// The changes that [`State::commit`] takes to undo the entry: in the state that follows it.
    pub fn undo(&self) -> Changes {
        let mut changes: Changes = self.rows.iter().map(|row| row.before.clone()).collect();
        // The youngest first: it is mostly the last of its tree, and moves no other.
        changes.extend(self.rows.iter().rev().filter_map(RowChange::cut));
        changes.sort_by_key(rank_in_undo);
        changes
    }
}

impl RowChange {
    /// What makes a root of a provider that goes when the entry is undone, as its parent may go
    /// before it.
    fn cut(&self) -> Option<Change> {
        match (&self.before, &self.after) {
            (Change::Delete(_), Change::PutProvider(id, row)) if row.parent.is_some() => {
                let row = ProviderRow {
                    parent: None,
                    ..row.clone()
                };
                Some(Change::PutProvider(*id, row))
            }
            _ => None,
        }
    }
}

fn rows_changed(before: Option<&State>, changes: &Changes) -> Vec<RowChange> {
    let mut places = BTreeMap::new();
    let mut rows: Vec<RowChange> = Vec::new();
    for change in changes {
        let key = change.key();
        if !is_of_placement(&key) {
            continue;
        }
        if let Some(place) = places.get(&key) {
            let row: &mut RowChange = &mut rows[*place];
            row.after = present(change.clone());
            continue;
        }
        let row = before.map_or_else(|| Change::Delete(key.clone()), |state| state.row(&key));
        places.insert(key, rows.len());
        rows.push(RowChange {
            before: present(row),
            after: present(change.clone()),
        });
    }
    rows.retain(|row| row.before != row.after);
    rows
}

fn is_of_placement(key: &RowKey) -> bool {
    match key {
        RowKey::Provider(_)
        | RowKey::Inventory(..)
        | RowKey::ProviderTraits(_)
        | RowKey::ProviderAggregates(_)
        | RowKey::ResourceClass(_)
        | RowKey::Trait(_)
        | RowKey::Consumer(_) => true,
        RowKey::Session(_)
        | RowKey::Counters
        | RowKey::Outcome(..)
        | RowKey::Level
        | RowKey::Join(_)
        | RowKey::Partition(_) => false,
    }
}

/// Sets are never deleted: they are put empty.
fn present(change: Change) -> Change {
    match change {
        Change::Delete(RowKey::ProviderTraits(id)) => Change::PutProviderTraits(id, [].into()),
        Change::Delete(RowKey::ProviderAggregates(id)) => {
            Change::PutProviderAggregates(id, [].into())
        }
        change => change,
    }
}

/// What is referred to comes first and goes last.
fn rank_in_undo(change: &Change) -> u8 {
    match change {
        Change::PutResourceClass(..) | Change::PutTrait(..) => 0,
        Change::PutProvider(..) => 1,
        Change::PutInventory(..) => 2,
        Change::PutProviderTraits(..) | Change::PutProviderAggregates(..) => 3,
        Change::PutConsumer(..) | Change::Delete(RowKey::Consumer(_)) => 4,
        Change::Delete(RowKey::Inventory(..)) => 5,
        Change::Delete(RowKey::Provider(_)) => 6,
        _ => 7,
    }
}

impl Names {
    fn of(rows: &[RowChange], before: Option<&State>) -> Self {
        let mut names = Self::default();
        for row in rows {
            for side in [&row.after, &row.before] {
                names.take(side);
            }
        }
        let Some(state) = before else {
            return names;
        };
        for row in rows {
            for side in [&row.before, &row.after] {
                names.look_up(side, state);
            }
        }
        names
    }

    /// The name that a row gives itself, unless a later one did.
    fn take(&mut self, change: &Change) {
        match change {
            Change::PutProvider(id, row) => {
                self.providers.entry(*id).or_insert(row.uuid);
            }
            Change::PutResourceClass(id, row) => {
                self.classes.entry(*id).or_insert_with(|| row.name.clone());
            }
            Change::PutTrait(id, row) => {
                self.traits.entry(*id).or_insert_with(|| row.name.clone());
            }
            _ => {}
        }
    }

    /// The names of what a row refers to.
    fn look_up(&mut self, change: &Change, state: &State) {
        match change {
            Change::PutProvider(_, row) => {
                row.parent
                    .into_iter()
                    .for_each(|id| self.provider(id, state));
            }
            Change::PutInventory(id, class, _) | Change::Delete(RowKey::Inventory(id, class)) => {
                self.provider(*id, state);
                self.class(*class, state);
            }
            Change::PutProviderTraits(id, traits) => {
                self.provider(*id, state);
                traits.iter().for_each(|id| self.trait_(*id, state));
            }
            Change::PutProviderAggregates(id, _) => self.provider(*id, state),
            Change::PutConsumer(_, row) => {
                for amount in &row.allocations {
                    self.provider(amount.provider, state);
                    self.class(amount.class, state);
                }
            }
            _ => {}
        }
    }

    fn provider(&mut self, id: ProviderId, state: &State) {
        if let Some(node) = state.node_by_id(id) {
            self.providers.entry(id).or_insert(node.uuid);
        }
    }

    fn class(&mut self, id: ResourceClassId, state: &State) {
        if let Some(row) = state.resource_classes.row(id.0) {
            self.classes.entry(id).or_insert_with(|| row.name.clone());
        }
    }

    fn trait_(&mut self, id: TraitId, state: &State) {
        if let Some(row) = state.traits.row(id.0) {
            self.traits.entry(id).or_insert_with(|| row.name.clone());
        }
    }
}
