//! Upstream's rows as the rows of a state, and back.
//!
//! Numbers of a state are dense and follow the order of upstream's, as the order of candidates follows from them. On the way
//! back each is one higher: to MySQL, 0 may be the order to draw a number. Resource classes are numbered as upstream
//! numbers them, since it tells standard ones by their numbers.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::standard;
use placement_model::state::change::{
    Amount, ConsumerRow, Counters, InventoryRow, NameRow, ProviderId, ProviderRow, ResourceClassId,
    TraitId,
};
use placement_model::types::{self, Generation, ProviderUuid};
use placement_model::{Change, State};

use crate::schema::{
    Aggregate, Allocation, CUSTOM_CLASS_ID_MIN, Consumer, ConsumerType, Inventory, Numbered,
    Project, ProviderAggregate, ProviderTrait, ResourceClass, ResourceProvider, Row, Rows, Trait,
    User, place, row,
};
use crate::sql::{Text, Whole};

/// The rows of a state, from rows that were checked.
pub(crate) fn changes(rows: &Rows) -> Vec<Change> {
    let counters = Counters {
        provider: dense(rows.resource_providers.len()),
        resource_class: dense(rows.resource_classes.len()),
        trait_: dense(rows.traits.len()),
        ..Counters::default()
    };
    let mut changes = vec![Change::PutCounters(counters)];
    changes.extend(
        (0..)
            .zip(&rows.resource_classes)
            .map(|(id, it)| Change::PutResourceClass(ResourceClassId(id), name_row(it))),
    );
    changes.extend(
        (0..)
            .zip(&rows.traits)
            .map(|(id, it)| Change::PutTrait(TraitId(id), name_row(it))),
    );
    changes.extend(
        (0..)
            .zip(&rows.resource_providers)
            .map(|(id, it)| Change::PutProvider(ProviderId(id), provider_row(rows, it))),
    );
    changes.extend(rows.inventories.iter().map(|it| inventory(rows, it)));
    let mut traits: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for it in &rows.resource_provider_traits {
        let of = traits
            .entry(provider_id(rows, it.resource_provider_id))
            .or_default();
        of.insert(TraitId(dense_id(&rows.traits, it.trait_id)));
    }
    changes.extend(
        traits
            .into_iter()
            .map(|(id, traits)| Change::PutProviderTraits(id, traits)),
    );
    let mut aggregates: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for it in &rows.resource_provider_aggregates {
        let of = aggregates
            .entry(provider_id(rows, it.resource_provider_id))
            .or_default();
        of.insert(types::AggregateUuid::from(name(
            &rows.placement_aggregates,
            it.aggregate_id,
        )));
    }
    changes.extend(
        aggregates
            .into_iter()
            .map(|(id, set)| Change::PutProviderAggregates(id, set)),
    );
    changes.extend(consumers(rows));
    changes
}

fn name_row<N: std::str::FromStr<Err: std::fmt::Debug>>(it: &impl Numbered) -> NameRow<N> {
    NameRow {
        name: it.name().parse().expect("names were checked"),
        updated_at: it.modified(),
    }
}

fn provider_row(rows: &Rows, it: &ResourceProvider) -> ProviderRow {
    let name = it.name.as_ref().expect("names were checked");
    ProviderRow {
        uuid: ProviderUuid(it.name().parse().expect("UUIDs were checked")),
        name: name
            .as_str()
            .parse()
            .expect("no name is longer than its column"),
        generation: Generation(it.generation.expect("generations were checked")),
        parent: it
            .parent_provider_id
            .map(|parent| provider_id(rows, parent)),
        created_at: it.created_at.unwrap_or_default(),
        updated_at: it.modified(),
    }
}

fn inventory(rows: &Rows, it: &Inventory) -> Change {
    let class = ResourceClassId(dense_id(&rows.resource_classes, it.resource_class_id));
    let inventory = types::Inventory {
        total: it.total.0,
        reserved: it.reserved.0,
        min_unit: it.min_unit.0,
        max_unit: it.max_unit.0,
        step_size: it.step_size.0,
        allocation_ratio: it.allocation_ratio,
    };
    let row = InventoryRow {
        inventory,
        updated_at: it.modified(),
    };
    Change::PutInventory(provider_id(rows, it.resource_provider_id), class, row)
}

/// The allocations are sorted by consumer.
fn consumers(rows: &Rows) -> impl Iterator<Item = Change> + '_ {
    rows.consumers.iter().map(|it| {
        let consumer = |allocation: &Allocation| allocation.consumer_id.as_str().cmp(it.name());
        let from = rows
            .allocations
            .partition_point(|allocation| consumer(allocation).is_lt());
        let to = rows
            .allocations
            .partition_point(|allocation| consumer(allocation).is_le());
        let of_it = &rows.allocations[from..to];
        let amounts = of_it.iter().map(|allocation| Amount {
            provider: provider_id(rows, allocation.resource_provider_id),
            class: ResourceClassId(dense_id(
                &rows.resource_classes,
                allocation.resource_class_id,
            )),
            units: u64::from(allocation.used.0),
        });
        let kind = it.consumer_type_id.map(|id| name(&rows.consumer_types, id));
        let row = ConsumerRow {
            generation: Generation(it.generation),
            project: name(&rows.projects, it.project_id).into(),
            user: name(&rows.users, it.user_id).into(),
            consumer_type: kind.map(|name| name.parse().expect("names were checked")),
            allocations: amounts.collect(),
            updated_at: of_it
                .iter()
                .map(Row::modified)
                .max()
                .unwrap_or_else(|| it.modified()),
        };
        Change::PutConsumer(it.name().into(), row)
    })
}

fn provider_id(rows: &Rows, id: u32) -> ProviderId {
    ProviderId(dense_id(&rows.resource_providers, id))
}

fn dense_id<T: Numbered>(sorted: &[T], id: u32) -> u32 {
    dense(place(sorted, id).expect("rows refer to rows that are there"))
}

fn name<T: Numbered>(sorted: &[T], id: u32) -> &str {
    row(sorted, id)
        .expect("rows refer to rows that are there")
        .name()
}

fn dense(place: usize) -> u32 {
    u32::try_from(place).expect("rows with a number of 32 bits are no more than that")
}

/// The rows of a state, as upstream would have them; parents before their children.
pub(crate) fn rows(state: &State) -> Rows {
    let mut back = Back::default();
    for change in state.rows() {
        back.take(change);
    }
    back.finish()
}

/// Rows of a state on their way. They come as [`State::rows`] gives them: what a row refers to comes before it.
#[derive(Default)]
struct Back {
    rows: Rows,
    class_ids: BTreeMap<ResourceClassId, u32>,
    custom_classes: u32,
    /// Standard ones of a later version.
    unknown_classes: u32,
    roots: BTreeMap<ProviderId, u32>,
    aggregates: Numbers,
    projects: Numbers,
    users: Numbers,
    types: Numbers,
}

/// Numbers for texts, from 1 on, by first use.
#[derive(Default)]
struct Numbers(BTreeMap<String, u32>);

impl Numbers {
    fn of(&mut self, text: &str) -> u32 {
        let next = dense(self.0.len() + 1);
        *self.0.entry(text.to_owned()).or_insert(next)
    }

    fn each<T>(self, row: impl Fn(u32, &str) -> T) -> Vec<T> {
        let mut texts: Vec<_> = self.0.into_iter().map(|(text, id)| (id, text)).collect();
        texts.sort_unstable();
        texts.iter().map(|(id, text)| row(*id, text)).collect()
    }
}

impl Back {
    fn take(&mut self, change: Change) {
        let rows = &mut self.rows;
        match change {
            Change::PutResourceClass(id, row) => {
                let number = self.class_number(row.name.as_str());
                self.class_ids.insert(id, number);
                self.rows.resource_classes.push(ResourceClass {
                    id: number,
                    name: row.name.as_str().into(),
                    created_at: Some(row.updated_at),
                    updated_at: None,
                });
            }
            Change::PutTrait(id, row) => rows.traits.push(Trait {
                id: id.0 + 1,
                name: row.name.as_str().into(),
                created_at: Some(row.updated_at),
                updated_at: None,
            }),
            Change::PutProvider(id, row) => self.provider(id, &row),
            Change::PutInventory(id, class, row) => self.inventory(id, class, &row),
            Change::PutProviderTraits(id, traits) => {
                rows.resource_provider_traits
                    .extend(traits.iter().map(|it| ProviderTrait {
                        trait_id: it.0 + 1,
                        resource_provider_id: id.0 + 1,
                        created_at: None,
                        updated_at: None,
                    }));
            }
            Change::PutProviderAggregates(id, aggregates) => {
                for it in &aggregates {
                    rows.resource_provider_aggregates.push(ProviderAggregate {
                        resource_provider_id: id.0 + 1,
                        aggregate_id: self.aggregates.of(it.as_str()),
                        created_at: None,
                        updated_at: None,
                    });
                }
            }
            Change::PutConsumer(consumer, row) => self.consumer(&consumer.to_string(), &row),
            // Of the cluster, not of placement.
            _ => {}
        }
    }

    /// As upstream numbers classes: standard ones by their places in os-resource-classes, of which later ones may be unknown
    /// here; custom ones by age.
    fn class_number(&mut self, name: &str) -> u32 {
        if let Some(place) = standard::resource_classes().position(|known| known == name) {
            return dense(place);
        }
        let (next, first) = match name.starts_with("CUSTOM_") {
            true => (&mut self.custom_classes, CUSTOM_CLASS_ID_MIN),
            false => (
                &mut self.unknown_classes,
                dense(standard::resource_classes().count()),
            ),
        };
        *next += 1;
        first + *next - 1
    }

    fn provider(&mut self, id: ProviderId, row: &ProviderRow) {
        let root = row.parent.map_or(id.0 + 1, |parent| self.roots[&parent]);
        self.roots.insert(id, root);
        self.rows.resource_providers.push(ResourceProvider {
            id: id.0 + 1,
            uuid: row.uuid.to_string().as_str().into(),
            name: Some(row.name.as_str().into()),
            generation: Some(row.generation.0),
            root_provider_id: Some(root),
            parent_provider_id: row.parent.map(|parent| parent.0 + 1),
            created_at: Some(row.created_at),
            updated_at: Some(row.updated_at).filter(|at| *at != row.created_at),
        });
    }

    fn inventory(&mut self, id: ProviderId, class: ResourceClassId, row: &InventoryRow) {
        let it = &row.inventory;
        self.rows.inventories.push(Inventory {
            id: next_id(&self.rows.inventories),
            resource_provider_id: id.0 + 1,
            resource_class_id: self.class_ids[&class],
            total: Whole(it.total),
            reserved: Whole(it.reserved),
            min_unit: Whole(it.min_unit),
            max_unit: Whole(it.max_unit),
            step_size: Whole(it.step_size),
            allocation_ratio: it.allocation_ratio,
            created_at: Some(row.updated_at),
            updated_at: None,
        });
    }

    fn consumer(&mut self, uuid: &str, row: &ConsumerRow) {
        let uuid: Text<36> = uuid.into();
        self.rows.consumers.push(Consumer {
            id: next_id(&self.rows.consumers),
            uuid: uuid.clone(),
            project_id: self.projects.of(row.project.as_str()),
            user_id: self.users.of(row.user.as_str()),
            generation: row.generation.0,
            consumer_type_id: row
                .consumer_type
                .as_ref()
                .map(|name| self.types.of(name.as_str())),
            created_at: Some(row.updated_at),
            updated_at: None,
        });
        for amount in &row.allocations {
            self.rows.allocations.push(Allocation {
                id: next_id(&self.rows.allocations),
                resource_provider_id: amount.provider.0 + 1,
                consumer_id: uuid.clone(),
                resource_class_id: self.class_ids[&amount.class],
                used: Whole(
                    u32::try_from(amount.units).expect("no amount is larger than max_unit"),
                ),
                created_at: Some(row.updated_at),
                updated_at: None,
            });
        }
    }

    fn finish(self) -> Rows {
        let mut rows = self.rows;
        rows.placement_aggregates = self.aggregates.each(|id, text| Aggregate {
            id,
            uuid: text.into(),
            created_at: None,
            updated_at: None,
        });
        rows.projects = self.projects.each(|id, text| Project {
            id,
            external_id: text.into(),
            created_at: None,
            updated_at: None,
        });
        rows.users = self.users.each(|id, text| User {
            id,
            external_id: text.into(),
            created_at: None,
            updated_at: None,
        });
        rows.consumer_types = self.types.each(|id, text| ConsumerType {
            id,
            name: text.into(),
            created_at: None,
            updated_at: None,
        });
        rows
    }
}

fn next_id<T>(rows: &[T]) -> u32 {
    dense(rows.len() + 1)
}
