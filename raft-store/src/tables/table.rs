//! The tables.

/// Declares the tables with the tags that stand in databases and snapshots, which are never given
/// again, and their names.
macro_rules! tables {
    ($($table:ident = $tag:literal, $name:literal;)+) => {
        /// A table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Table {
            $($table = $tag,)+
        }

        impl Table {
            /// Every table.
            pub(crate) const ALL: [Self; [$($tag),+].len()] = [$(Self::$table),+];

            /// What it is called.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$table => $name,)+
                }
            }
        }
    };
}

tables! {
    Providers = 1, "providers";
    Inventories = 2, "inventories";
    ProviderTraits = 3, "provider_traits";
    ProviderAggregates = 4, "provider_aggregates";
    ResourceClasses = 5, "resource_classes";
    Traits = 6, "traits";
    Consumers = 7, "consumers";
    Sessions = 8, "sessions";
    Counters = 9, "counters";
    Outcomes = 10, "outcomes";
    Level = 11, "level";
    Joins = 20, "joins";
    Partitions = 12, "partitions";
}

impl Table {
    /// Whether its rows are of the whole cluster: they are in the default partition.
    pub(super) fn is_of_the_cluster(self) -> bool {
        matches!(
            self,
            Self::Sessions | Self::Outcomes | Self::Joins | Self::Partitions
        )
    }

    /// The tag in databases and snapshots.
    pub(crate) const fn tag(self) -> u8 {
        self as u8
    }

    /// The table with this tag.
    pub(crate) fn of_tag(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.tag() == tag)
    }
}
