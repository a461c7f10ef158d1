//! One table per noun: which column family it has, and how a row's key and value are written.
//!
//! A key begins with the partition, two bytes, so that the rows of one lie together. A value is a record of
//! [`crate::wire`].

mod key;
mod table;
#[cfg(test)]
mod tests;

use placement_model::Change;
use placement_model::state::Digest;
use placement_model::state::change::{ProviderId, ResourceClassId, RowKey, TraitId};
use placement_model::types::{ConsumerUuid, PartitionId};

pub(crate) use self::key::prefix;
use self::key::{key_of, rest};
pub(crate) use self::table::Table;
use crate::wire::{RecordVersion, WireError, decode, encode};

/// A row to be put or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) table: Table,
    pub(crate) key: Vec<u8>,
    /// `None`: deleted.
    pub(crate) value: Option<Vec<u8>>,
}

/// Writes a change in a partition down as a row.
pub(crate) fn row(version: RecordVersion, partition: PartitionId, change: &Change) -> Row {
    let (table, key) = place(partition, &change.key());
    let value = value(version, change);
    Row { table, key, value }
}

fn place(partition: PartitionId, row: &RowKey) -> (Table, Vec<u8>) {
    match row {
        RowKey::Provider(id) => (Table::Providers, key_of(partition, &id.0)),
        RowKey::Inventory(provider, class) => (
            Table::Inventories,
            key_of(partition, &(provider.0, class.0)),
        ),
        RowKey::ProviderTraits(id) => (Table::ProviderTraits, key_of(partition, &id.0)),
        RowKey::ProviderAggregates(id) => (Table::ProviderAggregates, key_of(partition, &id.0)),
        RowKey::ResourceClass(id) => (Table::ResourceClasses, key_of(partition, &id.0)),
        RowKey::Trait(id) => (Table::Traits, key_of(partition, &id.0)),
        RowKey::Consumer(uuid) => (Table::Consumers, key_of(partition, &uuid.to_string())),
        RowKey::Session(origin) => (Table::Sessions, key_of(partition, origin)),
        RowKey::Counters => (Table::Counters, key_of(partition, &())),
        RowKey::Outcome(origin, sequence) => {
            (Table::Outcomes, key_of(partition, &(*origin, *sequence)))
        }
        RowKey::Level => (Table::Level, key_of(partition, &())),
        RowKey::Join(node) => (Table::Joins, key_of(partition, node)),
        RowKey::Partition(id) => (Table::Partitions, key_of(partition, &id.0)),
    }
}

/// A provider without traits or without aggregates has no row of these.
fn value(version: RecordVersion, change: &Change) -> Option<Vec<u8>> {
    match change {
        Change::PutProvider(_, row) => Some(encode(version, row)),
        Change::PutInventory(_, _, row) => Some(encode(version, row)),
        Change::PutProviderTraits(_, set) => (!set.is_empty()).then(|| encode(version, set)),
        Change::PutProviderAggregates(_, set) => (!set.is_empty()).then(|| encode(version, set)),
        Change::PutResourceClass(_, row) => Some(encode(version, row)),
        Change::PutTrait(_, row) => Some(encode(version, row)),
        Change::PutConsumer(_, row) => Some(encode(version, row)),
        Change::PutSession(_, row) => Some(encode(version, row)),
        Change::PutCounters(row) => Some(encode(version, row)),
        Change::PutOutcome(_, _, row) => Some(encode(version, row)),
        Change::PutLevel(row) => Some(encode(version, row)),
        Change::PutJoin(_, row) => Some(encode(version, row)),
        Change::PutPartition(_, row) => Some(encode(version, row)),
        Change::DeleteProvider(_)
        | Change::DeleteInventory(..)
        | Change::DeleteResourceClass(_)
        | Change::DeleteTrait(_)
        | Change::DeleteConsumer(_)
        | Change::DeleteOutcome(..)
        | Change::DeleteJoin(_) => None,
    }
}

/// A row that was read, as [`Cluster::load_with_digests`](placement_model::Cluster::load_with_digests)
/// takes it.
pub(crate) fn with_digest(
    (partition, row): (PartitionId, Change),
) -> (Digest, PartitionId, Change) {
    (Digest::of(&row), partition, row)
}

/// Reads a row, and which partition it is of.
pub(crate) fn read(
    table: Table,
    key: &[u8],
    value: &[u8],
) -> Result<(PartitionId, Change), WireError> {
    let partition = key::partition(key)?;
    if table.is_of_the_cluster() && !partition.is_default() {
        return Err(key::damaged(key));
    }
    Ok((partition, change(table, key, value)?))
}

fn change(table: Table, key: &[u8], value: &[u8]) -> Result<Change, WireError> {
    Ok(match table {
        Table::Providers => Change::PutProvider(ProviderId(rest(key)?), decode(value)?),
        Table::Inventories => {
            let (provider, class) = rest(key)?;
            let (provider, class) = (ProviderId(provider), ResourceClassId(class));
            Change::PutInventory(provider, class, decode(value)?)
        }
        Table::ProviderTraits => Change::PutProviderTraits(ProviderId(rest(key)?), decode(value)?),
        Table::ProviderAggregates => {
            Change::PutProviderAggregates(ProviderId(rest(key)?), decode(value)?)
        }
        Table::ResourceClasses => {
            Change::PutResourceClass(ResourceClassId(rest(key)?), decode(value)?)
        }
        Table::Traits => Change::PutTrait(TraitId(rest(key)?), decode(value)?),
        Table::Consumers => {
            let uuid: String = rest(key)?;
            Change::PutConsumer(ConsumerUuid::from(uuid), decode(value)?)
        }
        Table::Sessions => Change::PutSession(rest(key)?, decode(value)?),
        Table::Counters => {
            let () = rest(key)?;
            Change::PutCounters(decode(value)?)
        }
        Table::Outcomes => {
            let (origin, sequence) = rest(key)?;
            Change::PutOutcome(origin, sequence, decode(value)?)
        }
        Table::Level => {
            let () = rest(key)?;
            Change::PutLevel(decode(value)?)
        }
        Table::Joins => Change::PutJoin(rest(key)?, decode(value)?),
        Table::Partitions => Change::PutPartition(PartitionId(rest(key)?), decode(value)?),
    })
}
