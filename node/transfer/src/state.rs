//! Converts upstream's rows to the rows of a state and back.
//!
//! The ids of a state are dense and preserve the order of upstream's ids, which determines the
//! order of allocation candidates. The conversion back adds one to each: MySQL may treat 0 as a
//! request to generate an id. Resource classes get upstream's ids, since upstream recognizes
//! standard classes by their ids.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::str::FromStr;

use placement_model::state::change::{
    Amount, ConsumerRow, Counters, InventoryRow, NameRow, ProviderId, ProviderRow, ResourceClassId,
    TraitId,
};
use placement_model::types::{self, Generation, ProviderUuid, Timestamp};
use placement_model::{Change, State, standard};

use crate::schema::{
    Aggregate, Allocation, CUSTOM_CLASS_ID_MIN, Consumer, ConsumerType, Inventory, Project,
    ProviderAggregate, ProviderTrait, ResourceClass, ResourceProvider, Rows, Trait, User,
};
use crate::sql::{Text, Whole};

/// The rows of a state, from checked rows.
pub(crate) fn changes(rows: &Rows) -> Vec<Change> {
    let ids = Ids::collect(rows);
    let mut changes = vec![Change::PutCounters(ids.counters())];
    let classes = rows.resource_classes.iter();
    changes.extend(
        classes.map(|it| {
            Change::PutResourceClass(ids.class(it.id), name_row(&it.name, it.modified()))
        }),
    );
    let traits = rows.traits.iter();
    changes.extend(
        traits.map(|it| Change::PutTrait(ids.trait_id(it.id), name_row(&it.name, it.modified()))),
    );
    let providers = rows.resource_providers.iter();
    changes.extend(providers.map(|it| ids.put_provider(it)));
    changes.extend(rows.inventories.iter().map(|it| ids.put_inventory(it)));
    let mut traits: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for it in &rows.resource_provider_traits {
        let of = traits.entry(ids.provider(it.resource_provider_id));
        of.or_default().insert(ids.trait_id(it.trait_id));
    }
    let traits = traits.into_iter();
    changes.extend(traits.map(|(id, traits)| Change::PutProviderTraits(id, traits)));
    let names = by_id(&rows.placement_aggregates, |it| (it.id, it.uuid.as_str()));
    let mut aggregates: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for it in &rows.resource_provider_aggregates {
        let of = aggregates.entry(ids.provider(it.resource_provider_id));
        of.or_default().insert(names[&it.aggregate_id].into());
    }
    let aggregates = aggregates.into_iter();
    changes.extend(aggregates.map(|(id, set)| Change::PutProviderAggregates(id, set)));
    put_consumers(rows, &ids, &mut changes);
    changes
}

/// The values of one column, by the ids of their rows.
pub(crate) fn by_id<'a, R, N: ?Sized>(
    rows: &'a [R],
    of: fn(&'a R) -> (u32, &'a N),
) -> BTreeMap<u32, &'a N> {
    rows.iter().map(of).collect()
}

fn name_row<N: FromStr<Err: Debug>>(name: &Text<255>, updated_at: Timestamp) -> NameRow<N> {
    let name = name.as_str().parse().expect("names were checked");
    NameRow { name, updated_at }
}

fn put_consumers(rows: &Rows, ids: &Ids, changes: &mut Vec<Change>) {
    let projects = by_id(&rows.projects, |it| (it.id, &it.external_id));
    let users = by_id(&rows.users, |it| (it.id, &it.external_id));
    let types = by_id(&rows.consumer_types, |it| (it.id, &it.name));
    // The allocations are sorted by consumer.
    let all = &rows.allocations;
    for it in &rows.consumers {
        let from = all.partition_point(|allocation| allocation.consumer_id < it.uuid);
        let to = all.partition_point(|allocation| allocation.consumer_id <= it.uuid);
        let amounts = all[from..to].iter().map(|allocation| Amount {
            provider: ids.provider(allocation.resource_provider_id),
            class: ids.class(allocation.resource_class_id),
            units: allocation.used.0.into(),
        });
        let kind = it.consumer_type_id.map(|id| types[&id].as_str());
        let row = ConsumerRow {
            generation: Generation(it.generation),
            project: projects[&it.project_id].as_str().into(),
            user: users[&it.user_id].as_str().into(),
            consumer_type: kind.map(|name| name.parse().expect("names were checked")),
            allocations: amounts.collect(),
            updated_at: it.modified(),
            hold: None,
        };
        changes.push(Change::PutConsumer(it.uuid.as_str().into(), row));
    }
}

/// The ids of upstream's rows, sorted: the position of each is its id in a state.
struct Ids {
    providers: Vec<u32>,
    classes: Vec<u32>,
    traits: Vec<u32>,
}

impl Ids {
    fn collect(rows: &Rows) -> Self {
        let mut ids = Self {
            providers: rows.resource_providers.iter().map(|it| it.id).collect(),
            classes: rows.resource_classes.iter().map(|it| it.id).collect(),
            traits: rows.traits.iter().map(|it| it.id).collect(),
        };
        for ids in [&mut ids.providers, &mut ids.classes, &mut ids.traits] {
            ids.sort_unstable();
        }
        ids
    }

    #[allow(
        clippy::needless_update,
        reason = "a binary that is one level ahead has one more"
    )]
    fn counters(&self) -> Counters {
        Counters {
            provider: dense(self.providers.len()),
            resource_class: dense(self.classes.len()),
            trait_: dense(self.traits.len()),
            ..Counters::default()
        }
    }

    fn provider(&self, id: u32) -> ProviderId {
        ProviderId(place(&self.providers, id))
    }

    fn class(&self, id: u32) -> ResourceClassId {
        ResourceClassId(place(&self.classes, id))
    }

    fn trait_id(&self, id: u32) -> TraitId {
        TraitId(place(&self.traits, id))
    }

    fn put_provider(&self, it: &ResourceProvider) -> Change {
        let name = it.name.as_ref().expect("names were checked").as_str();
        let row = ProviderRow {
            uuid: ProviderUuid(it.uuid.as_str().parse().expect("UUIDs were checked")),
            name: name.parse().expect("no name is longer than its column"),
            generation: Generation(it.generation.expect("generations were checked")),
            parent: it.parent_provider_id.map(|parent| self.provider(parent)),
            created_at: it.created_at,
            updated_at: it.modified(),
        };
        Change::PutProvider(self.provider(it.id), row)
    }

    fn put_inventory(&self, it: &Inventory) -> Change {
        let inventory = types::Inventory {
            total: it.total.0,
            reserved: it.reserved.0,
            min_unit: it.min_unit.0,
            max_unit: it.max_unit.0,
            step_size: it.step_size.0,
            allocation_ratio: it.allocation_ratio,
        };
        let updated_at = it.modified();
        let (provider, class) = (
            self.provider(it.resource_provider_id),
            self.class(it.resource_class_id),
        );
        Change::PutInventory(
            provider,
            class,
            InventoryRow {
                inventory,
                updated_at,
            },
        )
    }
}

fn place(sorted: &[u32], id: u32) -> u32 {
    dense(
        sorted
            .binary_search(&id)
            .expect("rows refer to existing rows"),
    )
}

fn dense(place: usize) -> u32 {
    u32::try_from(place).expect("rows with 32-bit ids fit 32 bits")
}

/// The rows of a state in upstream's form, parents before their children.
pub(crate) fn rows(state: &State) -> Rows {
    let mut back = RowCollector::default();
    for change in state.rows() {
        back.take(change);
    }
    back.finish()
}

/// Collects the rows of a state. [`State::rows`] returns referenced rows first.
#[derive(Default)]
struct RowCollector {
    rows: Rows,
    class_ids: BTreeMap<ResourceClassId, u32>,
    custom_classes: u32,
    /// Standard classes of a later version.
    unknown_classes: u32,
    roots: BTreeMap<ProviderId, u32>,
    aggregates: Numbers<36>,
    projects: Numbers<255>,
    users: Numbers<255>,
    types: Numbers<255>,
}

/// Numbers texts from 1, in the order of their first use.
#[derive(Default)]
struct Numbers<const MAX: usize>(BTreeMap<Text<MAX>, u32>);

impl<const MAX: usize> Numbers<MAX> {
    fn get_or_assign(&mut self, name: &str) -> u32 {
        let next = dense(self.0.len() + 1);
        *self.0.entry(text(name)).or_insert(next)
    }
}

fn text<const MAX: usize>(text: &str) -> Text<MAX> {
    Text(text.into())
}

/// Time of rows whose time is not shown.
const NEVER: Timestamp = Timestamp(0);

impl RowCollector {
    fn take(&mut self, change: Change) {
        match change {
            Change::PutResourceClass(id, row) => {
                let (number, name) = (
                    self.class_number(row.name.as_str()),
                    text(row.name.as_str()),
                );
                self.class_ids.insert(id, number);
                let classes = &mut self.rows.resource_classes;
                classes.push(ResourceClass::created_at(row.updated_at, (number, name)));
            }
            Change::PutTrait(id, row) => {
                let it = (id.0 + 1, text(row.name.as_str()));
                self.rows.traits.push(Trait::created_at(row.updated_at, it));
            }
            Change::PutProvider(id, row) => self.provider(id, &row),
            Change::PutInventory(id, class, row) => self.inventory(id, class, &row),
            Change::PutProviderTraits(id, traits) => {
                let rows = traits
                    .iter()
                    .map(|it| ProviderTrait::created_at(NEVER, (it.0 + 1, id.0 + 1)));
                self.rows.resource_provider_traits.extend(rows);
            }
            Change::PutProviderAggregates(id, aggregates) => {
                let numbers = aggregates
                    .iter()
                    .map(|it| self.aggregates.get_or_assign(it.as_str()));
                let rows = numbers.map(|it| ProviderAggregate::created_at(NEVER, (id.0 + 1, it)));
                self.rows.resource_provider_aggregates.extend(rows);
            }
            Change::PutConsumer(consumer, row) => self.consumer(&consumer.to_string(), &row),
            // Rows of the cluster, not of placement.
            _ => {}
        }
    }

    /// The class id as upstream assigns it: standard classes have their positions in
    /// os-resource-classes, of which later ones may be unknown here; custom classes are numbered by
    /// age.
    fn class_number(&mut self, name: &str) -> u32 {
        if let Some(place) = standard::resource_classes().position(|known| known == name) {
            return dense(place);
        }
        let (next, first) = if name.starts_with("CUSTOM_") {
            (&mut self.custom_classes, CUSTOM_CLASS_ID_MIN)
        } else {
            (
                &mut self.unknown_classes,
                dense(standard::resource_classes().count()),
            )
        };
        *next += 1;
        first + *next - 1
    }

    fn provider(&mut self, id: ProviderId, row: &ProviderRow) {
        let root = row.parent.map_or(id.0 + 1, |parent| self.roots[&parent]);
        self.roots.insert(id, root);
        let (uuid, name) = (text(&row.uuid.to_string()), text(row.name.as_str()));
        let (generation, parent) = (row.generation.0, row.parent.map(|parent| parent.0 + 1));
        let it = (
            id.0 + 1,
            uuid,
            Some(name),
            Some(generation),
            Some(root),
            parent,
        );
        let mut it = ResourceProvider::created_at(row.created_at, it);
        it.updated_at = Some(row.updated_at).filter(|at| *at != row.created_at);
        self.rows.resource_providers.push(it);
    }

    fn inventory(&mut self, id: ProviderId, class: ResourceClassId, row: &InventoryRow) {
        let it = &row.inventory;
        let (total, reserved, step) = (Whole(it.total), Whole(it.reserved), Whole(it.step_size));
        let (min, max, ratio) = (Whole(it.min_unit), Whole(it.max_unit), it.allocation_ratio);
        let (number, class) = (
            dense(self.rows.inventories.len() + 1),
            self.class_ids[&class],
        );
        let it = (
            number,
            id.0 + 1,
            class,
            total,
            reserved,
            min,
            max,
            step,
            ratio,
        );
        self.rows
            .inventories
            .push(Inventory::created_at(row.updated_at, it));
    }

    fn consumer(&mut self, uuid: &str, row: &ConsumerRow) {
        let project = self.projects.get_or_assign(row.project.as_str());
        let user = self.users.get_or_assign(row.user.as_str());
        let kind = row
            .consumer_type
            .as_ref()
            .map(|name| self.types.get_or_assign(name.as_str()));
        let Rows {
            consumers,
            allocations,
            ..
        } = &mut self.rows;
        let (number, uuid) = (dense(consumers.len() + 1), text(uuid));
        let it = (number, uuid.clone(), project, user, row.generation.0, kind);
        consumers.push(Consumer::created_at(row.updated_at, it));
        for amount in &row.allocations {
            let units = u32::try_from(amount.units).expect("amounts do not exceed max_unit");
            let (number, class) = (dense(allocations.len() + 1), self.class_ids[&amount.class]);
            let it = (
                number,
                amount.provider.0 + 1,
                uuid.clone(),
                class,
                Whole(units),
            );
            allocations.push(Allocation::created_at(row.updated_at, it));
        }
    }

    fn finish(self) -> Rows {
        let mut rows = self.rows;
        let aggregates = self.aggregates.0.into_iter().map(|(name, id)| (id, name));
        rows.placement_aggregates = aggregates
            .map(|it| Aggregate::created_at(NEVER, it))
            .collect();
        let projects = self.projects.0.into_iter().map(|(name, id)| (id, name));
        rows.projects = projects.map(|it| Project::created_at(NEVER, it)).collect();
        let users = self.users.0.into_iter().map(|(name, id)| (id, name));
        rows.users = users.map(|it| User::created_at(NEVER, it)).collect();
        let types = self.types.0.into_iter().map(|(name, id)| (id, name));
        rows.consumer_types = types
            .map(|it| ConsumerType::created_at(NEVER, it))
            .collect();
        rows
    }
}
