//! The tables, and a row of one of them.

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
    Level = 11,
    Joins = 20,
    Partitions = 12,
}

impl Table {
    /// Every table.
    pub(crate) const ALL: [Self; 13] = [
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
        Self::Level,
        Self::Joins,
        Self::Partitions,
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
            Self::Level => "level",
            Self::Joins => "joins",
            Self::Partitions => "partitions",
        }
    }

    /// Whether its rows are of the whole cluster: they are in the default partition.
    pub(super) fn is_of_the_cluster(self) -> bool {
        matches!(
            self,
            Self::Sessions | Self::Outcomes | Self::Joins | Self::Partitions
        )
    }

    /// The tag in snapshots.
    pub(crate) const fn tag(self) -> u8 {
        self as u8
    }

    /// The table with this tag.
    pub(crate) fn of_tag(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.tag() == tag)
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
    pub(super) fn put(table: Table, key: Vec<u8>, value: Vec<u8>) -> Self {
        Self {
            table,
            key,
            value: Some(value),
        }
    }

    pub(super) fn delete(table: Table, key: Vec<u8>) -> Self {
        Self {
            table,
            key,
            value: None,
        }
    }
}
