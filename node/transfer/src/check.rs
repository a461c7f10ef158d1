//! What must hold of the rows before they become a state: upstream's schema has no foreign keys for half of it. What does
//! not hold is listed, all of it in one run; nothing is guessed.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use placement_model::types::{ConsumerTypeName, ResourceClassName, TraitName};
use uuid::Uuid;

use crate::findings::{Findings, Kind};
use crate::schema::{Numbered, ResourceProvider, Row, Rows, place, row};
use crate::sql::Whole;

const MIGRATE: &str = "`placement-status upgrade check` counts them; `placement-manage db online_data_migrations` repairs \
                       them. Then dump again";
const BY_HAND: &str =
    "upstream has no command for this: look at the rows, delete or correct them, and dump again";

const NO_ROOT: Kind = Kind {
    what: "a resource provider without a root provider",
    advice: MIGRATE,
};
const NO_CONSUMER: Kind = Kind {
    what: "an allocation of a consumer that is not there",
    advice: MIGRATE,
};
const DANGLING: Kind = Kind {
    what: "a row that refers to one that is not there",
    advice: BY_HAND,
};
const NO_INVENTORY: Kind = Kind {
    what: "an allocation of what its resource provider has no inventory of",
    advice: BY_HAND,
};
const TWICE: Kind = Kind {
    what: "a row that is there twice",
    advice: BY_HAND,
};
const WRONG_ROOT: Kind = Kind {
    what: "a resource provider with another root than its parents lead to",
    advice: BY_HAND,
};
const CIRCLE: Kind = Kind {
    what: "a resource provider that is below itself",
    advice: BY_HAND,
};
const BAD_NAME: Kind = Kind {
    what: "a name or UUID that the API does not take",
    advice: BY_HAND,
};
const TOO_MUCH: Kind = Kind {
    what: "allocations of one consumer of one inventory that add up to more than 2147483647",
    advice: BY_HAND,
};
const NO_GENERATION: Kind = Kind {
    what: "a resource provider without a generation",
    advice: "upstream shows null and fails when it is to be raised; it has 0 here",
};
const UPPER_CASE: Kind = Kind {
    what: "a resource provider whose UUID is not in lower case with hyphens",
    advice: "it is here: a client that spells it otherwise is answered 404",
};
const DOUBLED: Kind = Kind {
    what: "allocations of one consumer of the same inventory",
    advice: "upstream counts them all and shows one of them; here they are one allocation of their sum",
};
const UNUSED: Kind = Kind {
    what: "projects, users, consumer types and aggregates that nothing refers to",
    advice: "they are left out: no request shows them",
};

/// A statement that shows the row with a number.
fn select(table: &str, id: u32) -> String {
    format!("SELECT * FROM {table} WHERE id = {id};")
}

/// Rows on their way, and what was found.
pub(crate) struct Check<'a> {
    pub(crate) rows: &'a mut Rows,
    /// Why they are refused.
    pub(crate) faults: &'a mut Findings,
    /// What the operator may want to know.
    pub(crate) notes: &'a mut Findings,
}

impl Check<'_> {
    /// Looks at all rows. Afterwards, if there are no faults, all that a row refers to is there once, rows with a number are
    /// sorted by it, and what nothing refers to is gone.
    pub(crate) fn all(mut self) {
        self.spell();
        self.sort();
        self.names();
        self.trees();
        self.belongings();
        self.consumers();
        self.allocations();
        if self.faults.is_empty() {
            self.add_up();
            self.leave_out();
        }
    }

    /// Provider UUIDs have one spelling here.
    fn spell(&mut self) {
        for it in &mut self.rows.resource_providers {
            if it.generation.is_none() {
                self.notes
                    .note(NO_GENERATION, || select(ResourceProvider::TABLE, it.id));
                it.generation = Some(0);
            }
            let Ok(uuid) = Uuid::try_parse(it.name()) else {
                continue;
            };
            let spelled = uuid.as_hyphenated().to_string();
            if spelled != it.name() {
                self.notes.note(UPPER_CASE, || {
                    format!("{}: {}", it.name(), select(ResourceProvider::TABLE, it.id))
                });
                it.uuid = spelled.as_str().into();
            }
        }
    }

    fn sort(&mut self) {
        let Self { rows, faults, .. } = self;
        sort(&mut rows.resource_classes, faults);
        sort(&mut rows.traits, faults);
        sort(&mut rows.resource_providers, faults);
        sort(&mut rows.placement_aggregates, faults);
        sort(&mut rows.projects, faults);
        sort(&mut rows.users, faults);
        sort(&mut rows.consumer_types, faults);
        sort(&mut rows.consumers, faults);
        let keys = rows
            .inventories
            .iter()
            .map(|it| [it.resource_provider_id, it.resource_class_id]);
        differ("inventories", "resource_class_id", keys, faults);
        let keys = rows
            .resource_provider_traits
            .iter()
            .map(|it| [it.resource_provider_id, it.trait_id]);
        differ("resource_provider_traits", "trait_id", keys, faults);
        let keys = rows
            .resource_provider_aggregates
            .iter()
            .map(|it| [it.resource_provider_id, it.aggregate_id]);
        differ("resource_provider_aggregates", "aggregate_id", keys, faults);
    }

    fn names(&mut self) {
        let Self { rows, faults, .. } = self;
        valid::<ResourceClassName, _>(&rows.resource_classes, faults);
        valid::<TraitName, _>(&rows.traits, faults);
        valid::<ConsumerTypeName, _>(&rows.consumer_types, faults);
        let mut names = BTreeSet::new();
        for it in &rows.resource_providers {
            let shown = || format!("{}: {}", it.name(), select(ResourceProvider::TABLE, it.id));
            if Uuid::try_parse(it.name()).is_err() || it.name.is_none() {
                faults.note(BAD_NAME, shown);
            }
            if let Some(name) = &it.name
                && !names.insert(name)
            {
                faults.note(TWICE, || format!("another one has the name of {}", shown()));
            }
        }
    }

    /// Parents and roots agree, and all parents lead to a root.
    fn trees(&mut self) {
        let Self { rows, faults, .. } = self;
        let providers = &rows.resource_providers;
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for it in providers {
            let shown = || select(ResourceProvider::TABLE, it.id);
            let Some(root) = it.root_provider_id else {
                faults.note(NO_ROOT, shown);
                continue;
            };
            let Some(parent) = it.parent_provider_id else {
                if root != it.id {
                    faults.note(WRONG_ROOT, shown);
                }
                continue;
            };
            children.entry(parent).or_default().push(it.id);
            match row(providers, parent) {
                None => faults.note(DANGLING, || format!("parent_provider_id: {}", shown())),
                Some(above) if above.root_provider_id != Some(root) => {
                    faults.note(WRONG_ROOT, shown)
                }
                Some(_) => {}
            }
        }
        let mut waiting: Vec<u32> = (providers.iter())
            .filter(|it| it.parent_provider_id.is_none())
            .map(ResourceProvider::id)
            .collect();
        while let Some(id) = waiting.pop() {
            waiting.extend(children.remove(&id).unwrap_or_default());
        }
        for id in children
            .into_iter()
            .filter(|(parent, _)| place(providers, *parent).is_some())
            .flat_map(|(_, ids)| ids)
        {
            faults.note(CIRCLE, || select(ResourceProvider::TABLE, id));
        }
    }

    /// What belongs to a provider.
    fn belongings(&mut self) {
        let Self { rows, faults, .. } = self;
        let providers = &rows.resource_providers;
        for it in &rows.inventories {
            let known = place(providers, it.resource_provider_id).is_some()
                && place(&rows.resource_classes, it.resource_class_id).is_some();
            if !known {
                faults.note(DANGLING, || select("inventories", it.id));
            }
        }
        for it in &rows.resource_provider_traits {
            let [provider, of] = [it.resource_provider_id, it.trait_id];
            if place(providers, provider).is_none() || place(&rows.traits, of).is_none() {
                faults.note(DANGLING, || {
                    select_pair("resource_provider_traits", "trait_id", [provider, of])
                });
            }
        }
        for it in &rows.resource_provider_aggregates {
            let [provider, of] = [it.resource_provider_id, it.aggregate_id];
            if place(providers, provider).is_none()
                || place(&rows.placement_aggregates, of).is_none()
            {
                faults.note(DANGLING, || {
                    select_pair(
                        "resource_provider_aggregates",
                        "aggregate_id",
                        [provider, of],
                    )
                });
            }
        }
    }

    fn consumers(&mut self) {
        let Self { rows, faults, .. } = self;
        for it in &rows.consumers {
            let kind = it
                .consumer_type_id
                .is_none_or(|id| place(&rows.consumer_types, id).is_some());
            let owners = place(&rows.projects, it.project_id).is_some()
                && place(&rows.users, it.user_id).is_some();
            if !kind || !owners {
                faults.note(DANGLING, || select("consumers", it.id));
            }
        }
    }

    fn allocations(&mut self) {
        let Self { rows, faults, .. } = self;
        let consumers: BTreeSet<&str> = rows.consumers.iter().map(Numbered::name).collect();
        let stocks: BTreeSet<[u32; 2]> = (rows.inventories.iter())
            .map(|it| [it.resource_provider_id, it.resource_class_id])
            .collect();
        for it in &rows.allocations {
            let shown = || select("allocations", it.id);
            if !consumers.contains(it.consumer_id.as_str()) {
                faults.note(NO_CONSUMER, shown);
            }
            let known = place(&rows.resource_providers, it.resource_provider_id).is_some()
                && place(&rows.resource_classes, it.resource_class_id).is_some();
            if !known {
                faults.note(DANGLING, shown);
            } else if !stocks.contains(&[it.resource_provider_id, it.resource_class_id]) {
                faults.note(NO_INVENTORY, shown);
            }
        }
    }

    /// The schema does not keep a consumer from having several allocations of one inventory.
    fn add_up(&mut self) {
        let Self {
            rows,
            faults,
            notes,
        } = self;
        let key = |it: &crate::schema::Allocation| {
            (
                it.consumer_id.clone(),
                it.resource_provider_id,
                it.resource_class_id,
            )
        };
        rows.allocations.sort_by_key(key);
        rows.allocations.dedup_by(|later, first| {
            let same = key(later) == key(first);
            if same {
                let shown = || {
                    format!(
                        "SELECT * FROM allocations WHERE id IN ({}, {});",
                        first.id, later.id
                    )
                };
                notes.note(DOUBLED, shown);
                match first
                    .used
                    .0
                    .checked_add(later.used.0)
                    .filter(|sum| *sum <= i32::MAX as u32)
                {
                    Some(sum) => first.used = Whole(sum),
                    None => faults.note(TOO_MUCH, shown),
                }
                first.updated_at = Some(first.modified().max(later.modified()));
            }
            same
        });
    }

    fn leave_out(&mut self) {
        let Self { rows, notes, .. } = self;
        let consumers = &rows.consumers;
        let projects: BTreeSet<u32> = consumers.iter().map(|it| it.project_id).collect();
        let users: BTreeSet<u32> = consumers.iter().map(|it| it.user_id).collect();
        let types: BTreeSet<u32> = consumers
            .iter()
            .filter_map(|it| it.consumer_type_id)
            .collect();
        let members = rows.resource_provider_aggregates.iter();
        let aggregates: BTreeSet<u32> = members.map(|it| it.aggregate_id).collect();
        keep(&mut rows.projects, &projects, notes);
        keep(&mut rows.users, &users, notes);
        keep(&mut rows.consumer_types, &types, notes);
        keep(&mut rows.placement_aggregates, &aggregates, notes);
    }
}

/// Sorts rows by their numbers. Neither a number nor a name is there twice.
fn sort<T: Numbered>(rows: &mut [T], faults: &mut Findings) {
    rows.sort_by_key(T::id);
    let same = rows.windows(2).filter(|pair| pair[0].id() == pair[1].id());
    same.for_each(|pair| faults.note(TWICE, || select(T::TABLE, pair[0].id())));
    let mut names: Vec<(&str, u32)> = rows.iter().map(|row| (row.name(), row.id())).collect();
    names.sort_unstable();
    for pair in names.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let [(name, one), (_, other)] = [pair[0], pair[1]];
        let table = T::TABLE;
        faults.note(TWICE, || {
            format!("{name:?}: SELECT * FROM {table} WHERE id IN ({one}, {other});")
        });
    }
}

fn valid<N: FromStr, T: Numbered>(rows: &[T], faults: &mut Findings) {
    for row in rows.iter().filter(|row| row.name().parse::<N>().is_err()) {
        faults.note(BAD_NAME, || {
            format!("{:?}: {}", row.name(), select(T::TABLE, row.id()))
        });
    }
}

fn select_pair(table: &str, column: &str, [provider, other]: [u32; 2]) -> String {
    format!("SELECT * FROM {table} WHERE resource_provider_id = {provider} AND {column} = {other};")
}

/// Rows that are told apart by a provider and something else.
fn differ(table: &str, column: &str, keys: impl Iterator<Item = [u32; 2]>, faults: &mut Findings) {
    let mut keys: Vec<_> = keys.collect();
    keys.sort_unstable();
    for pair in keys.windows(2).filter(|pair| pair[0] == pair[1]) {
        faults.note(TWICE, || select_pair(table, column, pair[0]));
    }
}

/// Keeps the rows with these numbers.
fn keep<T: Numbered>(rows: &mut Vec<T>, used: &BTreeSet<u32>, notes: &mut Findings) {
    let before = rows.len();
    rows.retain(|row| used.contains(&row.id()));
    let dropped = before - rows.len();
    if dropped > 0 {
        notes.note_many(UNUSED, dropped as u64, || {
            format!("{dropped} of {}", T::TABLE)
        });
    }
}
