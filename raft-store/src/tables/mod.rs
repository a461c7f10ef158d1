//! One table per noun: which column family, how a row's key and value are written.
//!
//! A key begins with the partition, two bytes that are zero today, so that one cluster can hold
//! several clouds later. Numbers in keys are big-endian, so that rows lie in the order of their
//! ids. A value is a record of [`crate::wire`].

mod consumers;
mod counters;
mod inventories;
mod key;
mod outcomes;
mod provider_aggregates;
mod provider_traits;
mod providers;
mod resource_classes;
mod sessions;
#[cfg(test)]
mod tests;
mod traits;

use placement_model::Change;

use crate::wire::WireError;

/// A table. The tags stand in snapshots: append only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Table {
    Providers = 1,
    Inventories = 2,
    ProviderTraits = 3,
    ProviderAggregates = 4,
    ResourceClasses = 5,
    Traits = 6,
    Consumers = 7,
    Sessions = 8,
    Counters = 9,
    Outcomes = 10,
}

impl Table {
    /// Every table.
    pub(crate) const ALL: [Self; 10] = [
        Self::Providers,
        Self::Inventories,
        Self::ProviderTraits,
        Self::ProviderAggregates,
        Self::ResourceClasses,
        Self::Traits,
        Self::Consumers,
        Self::Sessions,
        Self::Counters,
        Self::Outcomes,
    ];

    /// The column family.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Providers => "providers",
            Self::Inventories => "inventories",
            Self::ProviderTraits => "provider_traits",
            Self::ProviderAggregates => "provider_aggregates",
            Self::ResourceClasses => "resource_classes",
            Self::Traits => "traits",
            Self::Consumers => "consumers",
            Self::Sessions => "sessions",
            Self::Counters => "counters",
            Self::Outcomes => "outcomes",
        }
    }

    /// The tag in snapshots.
    pub(crate) const fn tag(self) -> u8 {
        self as u8
    }

    /// The table with this tag.
    pub(crate) fn of_tag(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.tag() == tag)
    }

    /// Reads a row.
    pub(crate) fn read(self, key: &[u8], value: &[u8]) -> Result<Change, WireError> {
        match self {
            Self::Providers => providers::read(key, value),
            Self::Inventories => inventories::read(key, value),
            Self::ProviderTraits => provider_traits::read(key, value),
            Self::ProviderAggregates => provider_aggregates::read(key, value),
            Self::ResourceClasses => resource_classes::read(key, value),
            Self::Traits => traits::read(key, value),
            Self::Consumers => consumers::read(key, value),
            Self::Sessions => sessions::read(key, value),
            Self::Counters => counters::read(key, value),
            Self::Outcomes => outcomes::read(key, value),
        }
    }
}

/// A row to be put or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) table: Table,
    pub(crate) key: Vec<u8>,
    /// `None`: deleted.
    pub(crate) value: Option<Vec<u8>>,
}

impl Row {
    fn put(table: Table, key: Vec<u8>, value: Vec<u8>) -> Self {
        Self {
            table,
            key,
            value: Some(value),
        }
    }

    fn delete(table: Table, key: Vec<u8>) -> Self {
        Self {
            table,
            key,
            value: None,
        }
    }
}

/// Writes a change down as a row.
pub(crate) fn row(change: &Change) -> Row {
    match change {
        Change::PutProvider(id, row) => providers::put(*id, row),
        Change::DeleteProvider(id) => providers::delete(*id),
        Change::PutInventory(provider, class, row) => inventories::put(*provider, *class, row),
        Change::DeleteInventory(provider, class) => inventories::delete(*provider, *class),
        Change::PutProviderTraits(provider, traits) => provider_traits::put(*provider, traits),
        Change::PutProviderAggregates(provider, aggregates) => {
            provider_aggregates::put(*provider, aggregates)
        }
        Change::PutResourceClass(id, row) => resource_classes::put(*id, row),
        Change::DeleteResourceClass(id) => resource_classes::delete(*id),
        Change::PutTrait(id, row) => traits::put(*id, row),
        Change::DeleteTrait(id) => traits::delete(*id),
        Change::PutConsumer(consumer, row) => consumers::put(consumer, row),
        Change::DeleteConsumer(consumer) => consumers::delete(consumer),
        Change::PutSession(origin, row) => sessions::put(*origin, row),
        Change::PutCounters(counters) => counters::put(counters),
        Change::PutOutcome(origin, sequence, outcome) => outcomes::put(*origin, *sequence, outcome),
        Change::DeleteOutcome(origin, sequence) => outcomes::delete(*origin, *sequence),
    }
}
