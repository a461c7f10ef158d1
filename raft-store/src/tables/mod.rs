//! One table per noun: which column family, how a row's key and value are written.
//!
//! A key begins with the partition, two bytes that are zero today, so that one cluster can hold
//! several clouds later. Numbers in keys are big-endian, so that rows lie in the order of their
//! ids. A value is a record of [`crate::wire`].

mod consumers;
mod counters;
mod inventories;
mod key;
mod level;
mod outcomes;
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

pub(crate) use self::table::{Row, Table};
use crate::wire::{RecordVersion, WireError};

/// Writes a change down as a row.
pub(crate) fn row(version: RecordVersion, change: &Change) -> Row {
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
        Change::DeleteOutcome(origin, sequence) => outcomes::delete(*origin, *sequence),
    }
}

/// A row that was read, as [`State::load_with_digests`](placement_model::State::load_with_digests)
/// takes it.
pub(crate) fn with_digest(row: Change) -> (Digest, Change) {
    (Digest::of(&row), row)
}

/// Reads a row.
pub(crate) fn read(table: Table, key: &[u8], value: &[u8]) -> Result<Change, WireError> {
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
    }
}
