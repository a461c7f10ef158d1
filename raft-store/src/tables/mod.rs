//! The tables of the state: their tags and names, and the encoding of keys and values.
//!
//! A key begins with the partition, two bytes, so that the rows of a partition are contiguous. In
//! the database, where all tables share one key space, the tag of the table precedes it. A value is
//! a record of [`crate::wire`].

mod key;
mod table;
#[cfg(test)]
mod tests;

use placement_model::state::Digest;
use placement_model::state::change::{ProviderId, ResourceClassId, RowKey, TraitId};
use placement_model::types::{ConsumerUuid, PartitionId};
use placement_model::{Change, Cluster};

pub(crate) use self::key::prefix;
use self::key::{numbers, text};
pub(crate) use self::table::Table;
use crate::wire::{RecordVersion, WireError, decode, encode};
use placement_base::runtime;

/// A row to put or delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) table: Table,
    pub(crate) key: Vec<u8>,
    /// `None` deletes the row.
    pub(crate) value: Option<Vec<u8>>,
}

/// Encodes a change in a partition as a row.
pub(crate) fn row(version: RecordVersion, partition: PartitionId, change: &Change) -> Row {
    let (table, key) = place(partition, &change.key());
    let value = value(version, change);
    Row { table, key, value }
}

fn place(partition: PartitionId, row: &RowKey) -> (Table, Vec<u8>) {
    let number = |number: u32| number.to_be_bytes().to_vec();
    let long = |number: u64| number.to_be_bytes().to_vec();
    let (table, row) = match row {
        RowKey::Provider(id) => (Table::Providers, number(id.0)),
        RowKey::Inventory(provider, class) => {
            let numbers = [provider.0, class.0].map(u32::to_be_bytes);
            (Table::Inventories, numbers.concat())
        }
        RowKey::ProviderTraits(id) => (Table::ProviderTraits, number(id.0)),
        RowKey::ProviderAggregates(id) => (Table::ProviderAggregates, number(id.0)),
        RowKey::ResourceClass(id) => (Table::ResourceClasses, number(id.0)),
        RowKey::Trait(id) => (Table::Traits, number(id.0)),
        RowKey::Consumer(uuid) => (Table::Consumers, uuid.to_string().into_bytes()),
        RowKey::Session(origin) => (Table::Sessions, long(*origin)),
        RowKey::Counters => (Table::Counters, Vec::new()),
        RowKey::Outcome(origin, sequence) => {
            let numbers = [*origin, *sequence].map(u64::to_be_bytes);
            (Table::Outcomes, numbers.concat())
        }
        RowKey::Level => (Table::Level, Vec::new()),
        RowKey::Join(node) => (Table::Joins, long(*node)),
        RowKey::Partition(id) => (Table::Partitions, id.0.to_be_bytes().to_vec()),
        RowKey::Limits => (Table::Limits, Vec::new()),
    };
    (table, [prefix(partition).as_slice(), &row].concat())
}

/// Encodes the value of a row; `None` deletes the row. A provider without traits has no row in the
/// table of traits; the same holds for aggregates.
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
        Change::PutLimits(row) => Some(encode(version, row)),
        Change::Delete(_) => None,
    }
}

/// Loads a state from its rows, which are decoded on a separate thread. Stops at the first
/// unreadable row. `damaged` converts an error about dangling references.
pub(crate) fn load<E: Send>(
    rows: impl Iterator<Item = Result<(PartitionId, Change), E>> + Send,
    damaged: impl FnOnce(String) -> E,
) -> Result<Cluster, E> {
    let rows =
        rows.map(|row| row.map(|(partition, row)| (Digest::from_change(&row), partition, row)));
    let mut failure = None;
    let cluster = runtime::run_ahead(rows, |rows| {
        let rows = rows.map_while(|row| row.map_err(|error| failure = Some(error)).ok());
        Cluster::load_with_digests(rows)
    });
    match failure {
        Some(error) => Err(error),
        None => cluster.map_err(|dangling| damaged(dangling.to_string())),
    }
}

/// Decodes a row and its partition.
pub(crate) fn read(
    table: Table,
    key: &[u8],
    value: &[u8],
) -> Result<(PartitionId, Change), WireError> {
    let partition = key::partition(key)?;
    if table.is_cluster_wide() && !partition.is_default() {
        return Err(key::damaged(key));
    }
    Ok((partition, change(table, key, value)?))
}

fn change(table: Table, key: &[u8], value: &[u8]) -> Result<Change, WireError> {
    let id = || numbers(key).map(|[id]| u32::from_be_bytes(id));
    let long = || numbers(key).map(|[number]| u64::from_be_bytes(number));
    let only = || numbers::<1, 0>(key);
    Ok(match table {
        Table::Providers => Change::PutProvider(ProviderId(id()?), decode(value)?),
        Table::Inventories => {
            let [provider, class] = numbers(key)?.map(u32::from_be_bytes);
            let (provider, class) = (ProviderId(provider), ResourceClassId(class));
            Change::PutInventory(provider, class, decode(value)?)
        }
        Table::ProviderTraits => Change::PutProviderTraits(ProviderId(id()?), decode(value)?),
        Table::ProviderAggregates => {
            Change::PutProviderAggregates(ProviderId(id()?), decode(value)?)
        }
        Table::ResourceClasses => Change::PutResourceClass(ResourceClassId(id()?), decode(value)?),
        Table::Traits => Change::PutTrait(TraitId(id()?), decode(value)?),
        Table::Consumers => Change::PutConsumer(ConsumerUuid::from(text(key)?), decode(value)?),
        Table::Sessions => Change::PutSession(long()?, decode(value)?),
        Table::Counters => only().and_then(|[]| Ok(Change::PutCounters(decode(value)?)))?,
        Table::Outcomes => {
            let [origin, sequence] = numbers(key)?.map(u64::from_be_bytes);
            Change::PutOutcome(origin, sequence, decode(value)?)
        }
        Table::Level => only().and_then(|[]| Ok(Change::PutLevel(decode(value)?)))?,
        Table::Joins => Change::PutJoin(long()?, decode(value)?),
        Table::Partitions => {
            let [id] = numbers(key)?.map(u16::from_be_bytes);
            Change::PutPartition(PartitionId(id), decode(value)?)
        }
        Table::Limits => only().and_then(|[]| Ok(Change::PutLimits(decode(value)?)))?,
    })
}
