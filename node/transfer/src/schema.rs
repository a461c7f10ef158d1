//! The tables of upstream's database, as openstack-placement 16.0.0 has them: the one place that import and export know
//! them from.

use placement_model::types::Timestamp;

use crate::sql::{Field, Misfit, Sql, Text, Whole};

/// The revisions of the schema that have these columns: the later one only lacks some indexes.
pub(crate) const REVISIONS: [&str; 2] = ["422ece571366", "a082b8bb98d0"];

/// Those before, from which upstream's own command leads to these.
pub(crate) const EARLIER_REVISIONS: [&str; 3] = ["b4ed3a175331", "611cd6dffd7b", "b5c396305c25"];

/// Where the revision stands, and its one column.
pub(crate) const REVISION_TABLE: (&str, &[&str]) = ("alembic_version", &["version_num"]);

/// Custom resource classes have ids from here on; upstream takes a class below for a standard one.
pub(crate) const CUSTOM_CLASS_ID_MIN: u32 = 10_000;

/// A row of one of the tables.
pub(crate) trait Row: Sized {
    /// Its table.
    const TABLE: &'static str;
    /// Its columns.
    const COLUMNS: &'static [&'static str];

    /// A row from the values of its columns.
    fn read(values: Vec<Sql>) -> Result<Self, Misfit>;

    /// The values of its columns.
    fn values(&self) -> Vec<Sql>;

    /// When it was written last: what upstream shows. The epoch, if the row has no time.
    fn modified(&self) -> Timestamp;
}

/// What has a number of its own.
pub(crate) trait Numbered: Row {
    /// The number.
    fn id(&self) -> u32;

    /// What must differ between two rows besides the number.
    fn name(&self) -> &str;
}

fn field<F: Field>(column: &'static str, value: Sql) -> Result<F, Misfit> {
    F::read(value).map_err(|misfit| Misfit { column, ..misfit })
}

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident: $row:ident { $($column:ident: $type:ty),* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone)]
            pub(crate) struct $row {
                $(pub(crate) $column: $type,)*
                pub(crate) created_at: Option<Timestamp>,
                pub(crate) updated_at: Option<Timestamp>,
            }

            impl Row for $row {
                const TABLE: &'static str = stringify!($table);
                const COLUMNS: &'static [&'static str] =
                    &[$(stringify!($column),)* "created_at", "updated_at"];

                fn read(values: Vec<Sql>) -> Result<Self, Misfit> {
                    let mut values = values.into_iter();
                    let mut next = || values.next().expect("there is a value for each column");
                    Ok(Self {
                        $($column: field(stringify!($column), next())?,)*
                        created_at: field("created_at", next())?,
                        updated_at: field("updated_at", next())?,
                    })
                }

                fn values(&self) -> Vec<Sql> {
                    let Self { $($column,)* created_at, updated_at } = self;
                    vec![$($column.write(),)* created_at.write(), updated_at.write()]
                }

                fn modified(&self) -> Timestamp {
                    self.updated_at.or(self.created_at).unwrap_or_default()
                }
            }
        )*

        /// The rows of all tables.
        #[derive(Debug, Default)]
        pub(crate) struct Rows {
            $(pub(crate) $table: Vec<$row>,)*
        }

        impl Rows {
            /// All tables with their columns, each behind those that it refers to.
            pub(crate) const TABLES: &'static [(&'static str, &'static [&'static str])] =
                &[$((stringify!($table), $row::COLUMNS),)*];

            /// Takes a row in. The table is one of these, and there is a value for each column.
            pub(crate) fn take(&mut self, table: &str, values: Vec<Sql>) -> Result<(), Misfit> {
                match table {
                    $(stringify!($table) => self.$table.push($row::read(values)?),)*
                    _ => unreachable!("the table is one of these"),
                }
                Ok(())
            }

            /// How many rows each table has, in the order of the tables.
            pub(crate) fn counts(&self) -> Vec<usize> {
                vec![$(self.$table.len(),)*]
            }

            /// The table with this name, its columns, and the values of each row.
            pub(crate) fn for_each_table<E>(
                &self,
                mut visit: impl FnMut(&'static str, &'static [&'static str], &mut dyn Iterator<Item = Vec<Sql>>) -> Result<(), E>,
            ) -> Result<(), E> {
                $(visit(stringify!($table), $row::COLUMNS, &mut self.$table.iter().map(Row::values))?;)*
                Ok(())
            }
        }
    };
}

tables! {
    /// A resource class.
    resource_classes: ResourceClass { id: u32, name: Text<255> }
    /// A trait.
    traits: Trait { id: u32, name: Text<255> }
    /// A resource provider. The name may be missing as far as the schema goes, and as a generation may.
    resource_providers: ResourceProvider {
        id: u32, uuid: Text<36>, name: Option<Text<200>>, generation: Option<i64>,
        root_provider_id: Option<u32>, parent_provider_id: Option<u32>
    }
    /// An inventory.
    inventories: Inventory {
        id: u32, resource_provider_id: u32, resource_class_id: u32, total: Whole<0>, reserved: Whole<0>,
        min_unit: Whole<1>, max_unit: Whole<1>, step_size: Whole<1>, allocation_ratio: f64
    }
    /// A provider has a trait.
    resource_provider_traits: ProviderTrait { trait_id: u32, resource_provider_id: u32 }
    /// An aggregate.
    placement_aggregates: Aggregate { id: u32, uuid: Text<36> }
    /// A provider is in an aggregate.
    resource_provider_aggregates: ProviderAggregate { resource_provider_id: u32, aggregate_id: u32 }
    /// A project.
    projects: Project { id: u32, external_id: Text<255> }
    /// A user.
    users: User { id: u32, external_id: Text<255> }
    /// A consumer type.
    consumer_types: ConsumerType { id: u32, name: Text<255> }
    /// A consumer.
    consumers: Consumer {
        id: u32, uuid: Text<36>, project_id: u32, user_id: u32, generation: i64, consumer_type_id: Option<u32>
    }
    /// What a consumer holds of one class of one provider.
    allocations: Allocation {
        id: u32, resource_provider_id: u32, consumer_id: Text<36>, resource_class_id: u32, used: Whole<1>
    }
}

macro_rules! numbered {
    ($($row:ident $name:ident),*) => {
        $(impl Numbered for $row {
            fn id(&self) -> u32 {
                self.id
            }

            fn name(&self) -> &str {
                self.$name.as_str()
            }
        })*
    };
}

numbered!(
    ResourceClass name, Trait name, ResourceProvider uuid, Aggregate uuid, Project external_id, User external_id,
    ConsumerType name, Consumer uuid
);

/// The place of the row with a number, among rows that are sorted by it.
pub(crate) fn place<T: Numbered>(sorted: &[T], id: u32) -> Option<usize> {
    sorted.binary_search_by_key(&id, T::id).ok()
}

/// The row with a number.
pub(crate) fn row<T: Numbered>(sorted: &[T], id: u32) -> Option<&T> {
    place(sorted, id).map(|place| &sorted[place])
}
