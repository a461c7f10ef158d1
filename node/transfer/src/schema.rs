//! The tables of upstream's database in openstack-placement 16.0.0, shared by import and export.

use std::collections::BTreeMap;

use placement_model::types::Timestamp;

use crate::sql::{Field, OutOfRange, Sql, Text, Whole};

/// The schema revisions with these columns: the later one only removes some indexes.
pub(crate) const REVISIONS: [&str; 2] = ["422ece571366", "a082b8bb98d0"];

/// Earlier revisions, which upstream's own command upgrades to these.
pub(crate) const EARLIER_REVISIONS: [&str; 3] = ["b4ed3a175331", "611cd6dffd7b", "b5c396305c25"];

/// The table that contains the revision.
pub(crate) const REVISION_TABLE: Table = Table {
    name: "alembic_version",
    columns: &[Column {
        name: "version_num",
        refers: "",
    }],
};

/// An additional table in which an export stores its position. Upstream ignores it.
pub(crate) const POSITION_TABLE: &str = "placementd_position";

/// The lowest id of custom resource classes; upstream treats classes with lower ids as standard
/// ones.
pub(crate) const CUSTOM_CLASS_ID_MIN: u32 = 10_000;

/// A table. If its rows have a number, that is the first column, and their name, if any, the
/// second.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
}

/// A column of a table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// The table whose numbers it refers to; empty if it is not a reference.
    pub(crate) refers: &'static str,
}

impl Table {
    pub(crate) fn is_numbered(&self) -> bool {
        self.columns[0].name == "id"
    }

    /// The sets of columns that are unique.
    pub(crate) fn keys(&self) -> &'static [&'static [usize]] {
        match self.name {
            "allocations" => &[&[0]],
            "inventories" => &[&[0], &[1, 2]],
            "resource_providers" => &[&[0], &[1], &[2]],
            _ if self.is_numbered() => &[&[0], &[1]],
            _ => &[&[0, 1]],
        }
    }

    /// A statement that shows a row.
    pub(crate) fn select<'a>(&self, values: impl IntoIterator<Item = &'a Sql>) -> String {
        let key = if self.is_numbered() { 1 } else { 2 };
        let columns = self.columns.iter().zip(values).take(key);
        let same = columns
            .map(|(column, value)| format!("{} = {value}", column.name))
            .collect::<Vec<_>>()
            .join(" AND ");
        format!("SELECT * FROM {} WHERE {same};", self.name)
    }
}

/// Upstream's table with this name.
pub(crate) fn table_named(name: &str) -> Option<&'static Table> {
    let mut tables = Rows::TABLES.iter().chain([&REVISION_TABLE]);
    tables.find(|table| table.name == name)
}

fn field<F: Field>(column: &'static str, value: Option<&&Sql>) -> Result<F, OutOfRange> {
    let value = value.expect("there is a value for each column");
    F::read(value).map_err(|misfit| OutOfRange { column, ..misfit })
}

macro_rules! tables {
    ($($table:ident: $row:ident { $($column:ident: $type:ty $(=> $refers:ident)?),* })*) => {
        $(
            #[derive(Debug, Clone)]
            pub(crate) struct $row {
                $(pub(crate) $column: $type,)*
                /// 1970-01-01 if the row has no creation time.
                pub(crate) created_at: Timestamp,
                pub(crate) updated_at: Option<Timestamp>,
            }

            impl $row {
                fn read(values: &[&Sql]) -> Result<Self, OutOfRange> {
                    let mut values = values.iter();
                    Ok(Self {
                        $($column: field(stringify!($column), values.next())?,)*
                        created_at: field::<Option<_>>("created_at", values.next())?.unwrap_or_default(),
                        updated_at: field("updated_at", values.next())?,
                    })
                }

                fn values(&self) -> Vec<Sql> {
                    let Self { $($column,)* created_at, updated_at } = self;
                    vec![$($column.write(),)* created_at.write(), updated_at.write()]
                }

                /// The time of the last write, which upstream shows.
                #[allow(dead_code, reason = "of some tables it is not shown")]
                pub(crate) fn modified(&self) -> Timestamp {
                    self.updated_at.unwrap_or(self.created_at)
                }

                /// A row that was never updated, with the values of its other columns.
                pub(crate) fn created_at(created_at: Timestamp, ($($column,)*): ($($type,)*)) -> Self {
                    Self { $($column,)* created_at, updated_at: None }
                }
            }
        )*

        /// The rows of all tables.
        #[derive(Debug, Default)]
        pub(crate) struct Rows {
            $(pub(crate) $table: Vec<$row>,)*
        }

        impl Rows {
            /// All tables, each after the tables that it refers to.
            pub(crate) const TABLES: &'static [Table] = &[$(Table {
                name: stringify!($table),
                columns: &[
                    $(Column { name: stringify!($column), refers: concat!($(stringify!($refers))?) },)*
                    Column { name: "created_at", refers: "" },
                    Column { name: "updated_at", refers: "" },
                ],
            },)*];

            /// Adds a row, which has a value for each column.
            pub(crate) fn take(&mut self, table: &Table, values: &[&Sql]) -> Result<(), OutOfRange> {
                match table.name {
                    $(stringify!($table) => self.$table.push($row::read(values)?),)*
                    _ => unreachable!("the table is one of these"),
                }
                Ok(())
            }

            /// Number of rows of each table, in the order of [`Self::TABLES`].
            pub(crate) fn counts(&self) -> Vec<usize> {
                vec![$(self.$table.len(),)*]
            }

            /// Calls a function with each table and its rows, each as the values of its columns.
            pub(crate) fn for_each_table<E>(
                &self,
                mut visit: impl FnMut(&'static Table, &mut dyn Iterator<Item = Vec<Sql>>) -> Result<(), E>,
            ) -> Result<(), E> {
                let mut tables = Self::TABLES.iter();
                $(
                    let table = tables.next().expect("TABLES has one entry per field");
                    visit(table, &mut self.$table.iter().map($row::values))?;
                )*
                Ok(())
            }
        }
    };
}

tables! {
    resource_classes: ResourceClass { id: u32, name: Text<255> }
    traits: Trait { id: u32, name: Text<255> }
    // The schema allows providers without a name and without a generation.
    resource_providers: ResourceProvider {
        id: u32, uuid: Text<36>, name: Option<Text<200>>, generation: Option<i64>,
        root_provider_id: Option<u32> => resource_providers,
        parent_provider_id: Option<u32> => resource_providers
    }
    inventories: Inventory {
        id: u32, resource_provider_id: u32 => resource_providers, resource_class_id: u32 => resource_classes,
        total: Whole<0>, reserved: Whole<0>, min_unit: Whole<1>, max_unit: Whole<1>, step_size: Whole<1>,
        allocation_ratio: f64
    }
    resource_provider_traits: ProviderTrait {
        trait_id: u32 => traits, resource_provider_id: u32 => resource_providers
    }
    placement_aggregates: Aggregate { id: u32, uuid: Text<36> }
    resource_provider_aggregates: ProviderAggregate {
        resource_provider_id: u32 => resource_providers, aggregate_id: u32 => placement_aggregates
    }
    projects: Project { id: u32, external_id: Text<255> }
    users: User { id: u32, external_id: Text<255> }
    consumer_types: ConsumerType { id: u32, name: Text<255> }
    consumers: Consumer {
        id: u32, uuid: Text<36>, project_id: u32 => projects, user_id: u32 => users, generation: i64,
        consumer_type_id: Option<u32> => consumer_types
    }
    allocations: Allocation {
        id: u32, resource_provider_id: u32 => resource_providers, consumer_id: Text<36>,
        resource_class_id: u32 => resource_classes, used: Whole<1>
    }
}

/// The names of referenced rows, by table and number.
pub(crate) struct Names(BTreeMap<&'static str, BTreeMap<String, String>>);

impl Names {
    pub(crate) fn collect(rows: &Rows) -> Self {
        let columns = Rows::TABLES.iter().flat_map(|table| table.columns);
        let mut names: BTreeMap<_, BTreeMap<_, _>> = columns
            .map(|column| (column.refers, BTreeMap::new()))
            .collect();
        let named = rows.for_each_table(|table, rows| {
            if let Some(names) = names.get_mut(table.name) {
                names.extend(
                    rows.map(|values| (values[0].text().to_owned(), values[1].text().to_owned())),
                );
            }
            Ok::<_, std::convert::Infallible>(())
        });
        let Ok(()) = named;
        Self(names)
    }

    /// The name of the row that a value of a column refers to.
    pub(crate) fn get(&self, column: &Column, value: &Sql) -> Option<&str> {
        self.0
            .get(column.refers)?
            .get(value.text())
            .map(String::as_str)
    }
}
