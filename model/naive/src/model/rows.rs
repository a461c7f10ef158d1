//! Loading the naive model from the rows of a partition, and rows as text for comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;

use placement_model::Change;
use placement_model::state::change::PartitionRow;
use placement_model::types::{PartitionName, Routes, Timestamp};

use super::{Naive, NaiveConsumer, NaivePartition, NaiveProvider, Named};

impl Naive {
    /// Loads the model of a partition from its rows.
    ///
    /// # Panics
    /// Panics if a row refers to a missing row.
    pub fn load(rows: impl IntoIterator<Item = Change>) -> Self {
        let rows: Vec<_> = rows.into_iter().collect();
        let (mut classes, mut traits) = (BTreeMap::new(), BTreeMap::new());
        let (mut providers, mut boots) = (BTreeMap::new(), BTreeMap::new());
        for row in &rows {
            match row {
                Change::PutResourceClass(id, row) => drop(classes.insert(*id, row.name.clone())),
                Change::PutTrait(id, row) => drop(traits.insert(*id, row.name.clone())),
                Change::PutProvider(id, row) => drop(providers.insert(*id, row.uuid)),
                Change::PutSession(origin, row) => drop(boots.insert(*origin, row.boot)),
                _ => {}
            }
        }
        let mut naive = Self::default();
        // Inventories, traits and aggregates come after their providers.
        let (first, rest): (Vec<_>, Vec<_>) =
            (rows.into_iter()).partition(|row| matches!(row, Change::PutProvider(..)));
        for row in first.into_iter().chain(rest) {
            match row {
                Change::PutProvider(id, row) => {
                    let provider = NaiveProvider {
                        order: naive.row_position(id.0),
                        name: row.name,
                        generation: row.generation,
                        parent: row.parent.map(|parent| providers[&parent]),
                        updated: row.updated_at,
                        inventories: BTreeMap::new(),
                        traits: BTreeSet::new(),
                        aggregates: BTreeSet::new(),
                    };
                    naive.providers.insert(row.uuid, provider);
                }
                Change::PutInventory(id, class, row) => {
                    let provider = naive.provider_mut(&providers[&id]);
                    provider.inventories.insert(classes[&class].clone(), row);
                }
                Change::PutProviderTraits(id, ids) => {
                    let names = ids.iter().map(|id| traits[id].clone());
                    naive.provider_mut(&providers[&id]).traits = names.collect();
                }
                Change::PutProviderAggregates(id, aggregates) => {
                    naive.provider_mut(&providers[&id]).aggregates = aggregates;
                }
                Change::PutResourceClass(id, row) => {
                    let (order, made) = (naive.row_position(id.0), row.updated_at);
                    let classes = Arc::make_mut(&mut naive.classes);
                    classes.insert(row.name, Named { order, made });
                }
                Change::PutTrait(id, row) => {
                    let (order, made) = (naive.row_position(id.0), row.updated_at);
                    let traits = Arc::make_mut(&mut naive.traits);
                    traits.insert(row.name, Named { order, made });
                }
                Change::PutConsumer(uuid, row) => {
                    for held in &row.allocations {
                        let of = (providers[&held.provider], classes[&held.class].clone());
                        let key = (uuid.clone(), of.0, of.1);
                        naive.allocations.insert(key, held.units);
                    }
                    let consumer = NaiveConsumer {
                        generation: row.generation,
                        project: row.project,
                        user: row.user,
                        consumer_type: row.consumer_type,
                        updated: row.updated_at,
                        hold: row.hold.map(|hold| *hold),
                    };
                    naive.consumers.insert(uuid, consumer);
                }
                Change::PutSession(origin, row) if row.boot == u64::MAX => {
                    naive.retired.insert(origin);
                }
                Change::PutSession(origin, row) => {
                    let key = (origin, row.boot);
                    naive.answered_below.insert(key, row.answered_below);
                }
                Change::PutOutcome(origin, sequence, outcome) => {
                    let key = (origin, boots[&origin], sequence);
                    Arc::make_mut(&mut naive.answered).insert(key, outcome);
                }
                Change::PutLevel(level) => naive.level = level,
                Change::PutPartition(id, row) => naive.load_partition(id.0.into(), row),
                Change::PutLimits(row) => naive.limits = Arc::new(*row),
                // The naive model has no ids and no joins.
                Change::PutCounters(_) | Change::PutJoin(..) | Change::Delete(_) => {}
            }
        }
        naive
    }

    /// Returns the position of a row in its table. Later rows get higher positions.
    fn row_position(&mut self, id: u32) -> u64 {
        self.counter = self.counter.max(id.into());
        id.into()
    }

    fn load_partition(&mut self, id: usize, row: PartitionRow) {
        self.begin_partitions();
        while self.partitions.len() <= id {
            self.add_partition(PartitionName::default(), Routes::default());
        }
        self.partitions[id] = NaivePartition {
            name: row.name,
            is_there: row.deleted_at.is_none(),
            routes: row.routing.routes,
            changes: row.routing.changes,
        };
    }

    /// The initial model of a new partition. `self` is the default partition of the cluster.
    pub fn beginning(&self, at: Timestamp) -> Self {
        let mut beginning = Self {
            level: self.level,
            ..Self::default()
        };
        for (name, _) in self.resource_classes() {
            if !name.is_custom() {
                beginning.make_class(at, &name);
            }
        }
        for (name, _) in self.traits(None) {
            if !name.is_custom() {
                beginning.make_trait(at, &name);
            }
        }
        beginning
    }

    /// Every row as text, by its name. Names and providers are numbered in the order of creation,
    /// per table.
    pub fn rows(&self) -> BTreeMap<String, String> {
        let mut rows = BTreeMap::from([
            ("level".to_owned(), format!("{:?}", self.level)),
            ("retired nodes".to_owned(), format!("{:?}", self.retired)),
            ("limits".to_owned(), format!("{:?}", self.limits)),
        ]);
        rows.extend(named("resource class", &self.classes));
        rows.extend(named("trait", &self.traits));
        let mut providers: Vec<_> = self.providers.iter().collect();
        providers.sort_by_key(|(_, provider)| provider.order);
        for (order, (uuid, provider)) in (0..).zip(providers) {
            let provider = NaiveProvider {
                order,
                ..provider.clone()
            };
            rows.insert(format!("provider {uuid}"), format!("{provider:?}"));
        }
        for (uuid, consumer) in &self.consumers {
            rows.insert(format!("consumer {uuid}"), format!("{consumer:?}"));
        }
        for ((consumer, provider, class), amount) in &self.allocations {
            let key = format!("allocation {consumer} {provider} {class}");
            rows.insert(key, amount.to_string());
        }
        // The default partition has no row before its routes change.
        for (id, partition) in self.partitions.iter().enumerate() {
            if id > 0 || partition.changes > 0 {
                rows.insert(format!("partition {id}"), format!("{partition:?}"));
            }
        }
        rows
    }
}

fn named<N: Ord + Display>(
    table: &str,
    names: &BTreeMap<N, Named>,
) -> impl Iterator<Item = (String, String)> {
    let mut ordered: Vec<_> = names.iter().collect();
    ordered.sort_by_key(|(_, named)| named.order);
    let ranked = ordered.into_iter().enumerate();
    ranked.map(move |(rank, (name, named))| {
        let row = format!("number {rank}, {:?}", named.made);
        (format!("{table} {name}"), row)
    })
}
