//! The changes of a log entry, for watchers and for the reconstruction of earlier states.
//!
//! Only rows of placement are included, not sessions, outcomes, counters, the level, joins or
//! partitions.

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

/// The start of the retained ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Floor {
    /// The ledger contains the changes of all entries after this index.
    pub index: u64,
    /// No later command has an earlier timestamp.
    pub at: Timestamp,
}

/// The changes of one log entry in one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// The log index. A command that concerns several partitions has one entry for each.
    pub index: u64,
    /// The timestamp of the command.
    pub at: Timestamp,
    /// The partition of the rows.
    pub partition: PartitionId,
    /// The name of the command, see [`Command::name`](crate::Command::name).
    pub verb: Cow<'static, str>,
    /// The id of the client's request, if known.
    pub request_id: Option<Uuid>,
    /// Each changed row once, in the order of its first change. Rows whose value is the same before
    /// and after the command are omitted.
    pub rows: Vec<RowChange>,
    /// The names of the ids in `rows`.
    pub names: Names,
}

/// A row before and after the entry. Each side is the change that puts this version of the row, or
/// deletes the row if it does not exist on that side. A missing set of traits or aggregates is
/// represented by an empty set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowChange {
    /// The row before the entry.
    pub before: Change,
    /// The row after the entry.
    pub after: Change,
}

/// The names of all dense ids in an entry. A renamed row has its name after the entry; a deleted
/// row has its name before the entry.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Names {
    /// UUIDs of the providers.
    pub providers: BTreeMap<ProviderId, ProviderUuid>,
    /// Names of the resource classes.
    pub classes: BTreeMap<ResourceClassId, ResourceClassName>,
    /// Names of the traits.
    pub traits: BTreeMap<TraitId, TraitName>,
}

impl LedgerEntry {
    /// The ledger entries of a command, one per partition with changed rows of placement. `before`
    /// is the cluster without the changes.
    pub fn for_command(
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
                names: Names::collect(&rows, state),
                rows,
            })
        };
        changes.iter().filter_map(of_one).collect()
    }

    /// The changes that undo the entry when [`State::commit`] applies them to the state after it.
    pub fn undo(&self) -> Changes {
        let mut changes: Changes = self.rows.iter().map(|row| row.before.clone()).collect();
        // The last created provider is cut off first: it is usually the last node of its tree, so
        // the other nodes keep their indexes.
        changes.extend(self.rows.iter().rev().filter_map(RowChange::cut));
        changes.sort_by_key(rank_in_undo);
        changes
    }
}

impl RowChange {
    /// If the entry created the provider, returns the change that makes it a root, so that the undo
    /// can delete its parent before it.
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
        if !is_placement_row(&key) {
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

fn is_placement_row(key: &RowKey) -> bool {
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
        | RowKey::Partition(_)
        | RowKey::Limits => false,
    }
}

/// Replaces the deletion of a set of traits or aggregates by an empty set.
fn present(change: Change) -> Change {
    match change {
        Change::Delete(RowKey::ProviderTraits(id)) => Change::PutProviderTraits(id, [].into()),
        Change::Delete(RowKey::ProviderAggregates(id)) => {
            Change::PutProviderAggregates(id, [].into())
        }
        change => change,
    }
}

/// Orders changes so that a referenced row is put first and deleted last.
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
    fn collect(rows: &[RowChange], before: Option<&State>) -> Self {
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

    /// Records the name in a row, unless the name of the row after the entry is already recorded.
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

    /// Looks up the names of the rows that a row refers to.
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
