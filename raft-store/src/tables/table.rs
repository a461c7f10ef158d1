//! The tables of the state.

/// Declares the tables with their names and their tags. Tags are stored in databases and snapshots
/// and are never reused.
macro_rules! tables {
    ($($table:ident = $tag:literal, $name:literal;)+) => {
        /// A table of the state.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Table {
            $($table = $tag,)+
        }

        impl Table {
            /// Every table, in order of declaration.
            pub(crate) const ALL: [Self; [$($tag),+].len()] = [$(Self::$table),+];

            /// Name in messages and reports.
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
    Limits = 21, "limits";
}

impl Table {
    /// Whether its rows belong to the whole cluster; such rows are in the default partition.
    pub(super) fn is_cluster_wide(self) -> bool {
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
    pub(crate) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.tag() == tag)
    }
}
