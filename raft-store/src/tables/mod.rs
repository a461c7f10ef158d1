//! One table per noun: which column family, how a row's key and value are written.
//!
//! A key begins with the partition, two bytes, so that the rows of one lie together. Numbers in keys are big-endian, so that rows lie in the order of their
//! ids. A value is a record of [`crate::wire`].

mod consumers;
mod counters;
mod inventories;
mod joins;
mod key;
mod level;
mod outcomes;
mod partitions;
mod provider_aggregates;
mod provider_traits;
mod providers;
mod resource_classes;
mod sessions;
mod table;
#[cfg(test)]
mod tests;
mod traits;

use placement_model::Change;
use placement_model::state::Digest;
use placement_model::types::PartitionId;

pub(crate) use self::key::prefix;
pub(crate) use self::table::{Row, Table};
use crate::wire::{RecordVersion, WireError};

/// Writes a change in a partition down as a row.
pub(crate) fn row(version: RecordVersion, partition: PartitionId, change: &Change) -> Row {
    let row = row_of_the_default(version, change);
    Row {
        key: key::moved(row.key, partition),
        ..row
    }
}

fn row_of_the_default(version: RecordVersion, change: &Change) -> Row {
    match change {
        Change::PutProvider(id, row) => providers::put(version, *id, row),
        Change::DeleteProvider(id) => providers::delete(*id),
        Change::PutInventory(provider, class, row) => {
            inventories::put(version, *provider, *class, row)
        }
        Change::DeleteInventory(provider, class) => inventories::delete(*provider, *class),
        Change::PutProviderTraits(provider, traits) => {
            provider_traits::put(version, *provider, traits)
        }
        Change::PutProviderAggregates(provider, aggregates) => {
            provider_aggregates::put(version, *provider, aggregates)
        }
        Change::PutResourceClass(id, row) => resource_classes::put(version, *id, row),
        Change::DeleteResourceClass(id) => resource_classes::delete(*id),
        Change::PutTrait(id, row) => traits::put(version, *id, row),
        Change::DeleteTrait(id) => traits::delete(*id),
        Change::PutConsumer(consumer, row) => consumers::put(version, consumer, row),
        Change::DeleteConsumer(consumer) => consumers::delete(consumer),
        Change::PutSession(origin, row) => sessions::put(version, *origin, row),
        Change::PutCounters(counters) => counters::put(version, counters),
        Change::PutOutcome(origin, sequence, outcome) => {
            outcomes::put(version, *origin, *sequence, outcome)
        }
        Change::PutLevel(level) => level::put(version, *level),
        Change::PutJoin(node, row) => joins::put(version, *node, row),
        Change::DeleteJoin(node) => joins::delete(*node),
        Change::PutPartition(id, row) => partitions::put(version, *id, row),
        Change::DeleteOutcome(origin, sequence) => outcomes::delete(*origin, *sequence),
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
    match table {
        Table::Providers => providers::read(key, value),
        Table::Inventories => inventories::read(key, value),
        Table::ProviderTraits => provider_traits::read(key, value),
        Table::ProviderAggregates => provider_aggregates::read(key, value),
        Table::ResourceClasses => resource_classes::read(key, value),
        Table::Traits => traits::read(key, value),
        Table::Consumers => consumers::read(key, value),
        Table::Sessions => sessions::read(key, value),
        Table::Counters => counters::read(key, value),
        Table::Outcomes => outcomes::read(key, value),
        Table::Level => level::read(key, value),
        Table::Joins => joins::read(key, value),
        Table::Partitions => partitions::read(key, value),
    }
}
