//! Consistency checks of the rows before they become a state: upstream's schema lacks foreign keys
//! for half of the references. One run lists all faults; nothing is guessed.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use placement_model::types::{ConsumerTypeName, ResourceClassName, TraitName};
use uuid::Uuid;

use crate::findings::Findings;
use crate::schema::{Allocation, Names, Rows, Table};
use crate::sql::{Sql, Whole};

const NO_ROOT: &str = "resource provider without a root: `placement-status upgrade check` finds it, `placement-manage db \
                       online_data_migrations` repairs it";
const NO_CONSUMER: &str = "allocation of a missing consumer: `placement-status upgrade check` counts them, \
                           `placement-manage db online_data_migrations` repairs them";
const DANGLING: &str = "row with a reference to a missing row";
const NO_INVENTORY: &str =
    "allocation whose resource provider has no inventory of its resource class";
const TWICE: &str = "duplicate row";
const WRONG_ROOT: &str = "resource provider with a wrong root: not the root of its parent, or not itself if it has no parent";
const CIRCLE: &str = "resource provider that is its own ancestor";
const BAD_NAME: &str = "name or UUID that the API rejects";
const TOO_MUCH: &str =
    "allocations of one consumer from one inventory whose sum exceeds 2147483647";
const NO_GENERATION: &str = "resource provider without a generation: upstream shows null and fails to increase it; \
                             it is imported as 0";
const OTHER_CASE: &str = "resource provider whose UUID is not in lower case with hyphens: it is imported in that form, and a client that \
                          spells it differently gets a 404";
const DOUBLED: &str = "second allocation of a consumer from one inventory: upstream counts both and shows one; they are \
                       imported as one allocation of their sum";

/// The rows under check, with its findings.
pub(crate) struct Check<'a> {
    pub(crate) rows: &'a mut Rows,
    /// Faults, which cause the import to be refused.
    pub(crate) faults: &'a mut Findings,
    /// Notes for the operator.
    pub(crate) notes: &'a mut Findings,
}

impl Check<'_> {
    /// Runs all checks. Afterwards, if there are no faults, all referenced rows exist exactly once,
    /// unreferenced rows are removed, and a consumer and all its allocations have the same
    /// modification time.
    pub(crate) fn all(mut self) {
        self.spell();
        self.references();
        self.names();
        self.trees();
        self.allocations();
        if self.faults.is_empty() {
            self.add_up();
            leave_out(self.rows);
        }
    }

    /// Normalizes the spelling of provider UUIDs.
    fn spell(&mut self) {
        for it in &mut self.rows.resource_providers {
            if it.generation.is_none() {
                self.notes
                    .note(NO_GENERATION, || select("resource_providers", it.id));
                it.generation = Some(0);
            }
            let uuid = Uuid::try_parse(it.uuid.as_str()).ok();
            let spelled = uuid.map(|uuid| uuid.as_hyphenated().to_string());
            match spelled {
                None => self.faults.note(BAD_NAME, || {
                    format!("uuid: {}", select("resource_providers", it.id))
                }),
                Some(spelled) if spelled != it.uuid.as_str() => {
                    self.notes.note(OTHER_CASE, || it.uuid.as_str().to_owned());
                    it.uuid.0 = spelled.into();
                }
                Some(_) => {}
            }
        }
    }

    /// Checks that referenced rows exist and that keys are unique.
    fn references(&mut self) {
        let names = Names::collect(self.rows);
        let Ok(()) = self.rows.for_each_table(|table, rows| {
            let mut seen = BTreeSet::new();
            for values in rows {
                let columns = table.columns.iter().zip(&values);
                let dangling = columns.filter(|(column, value)| {
                    let refers = !column.refers.is_empty() && **value != Sql::Null;
                    refers && names.get(column, value).is_none()
                });
                for (column, value) in dangling {
                    self.faults.note(DANGLING, || {
                        format!("{} is {value}: {}", column.name, table.select(&values))
                    });
                }
                for key in table.keys() {
                    let texts = key.iter().map(|place| values[*place].text());
                    if !seen.insert((*key, texts.collect::<Vec<_>>().join(" "))) {
                        self.faults.note(TWICE, || {
                            let columns = key
                                .iter()
                                .map(|place| table.columns[*place].name)
                                .collect::<Vec<_>>()
                                .join(", ");
                            format!("by {columns}: {}", table.select(&values))
                        });
                    }
                }
            }
            Ok::<_, Infallible>(())
        });
    }

    fn names(&mut self) {
        let Self { rows, faults, .. } = self;
        let mut check = |is_valid: bool, table, id| {
            if !is_valid {
                faults.note(BAD_NAME, || format!("name: {}", select(table, id)));
            }
        };
        for it in &rows.resource_classes {
            let name = it.name.as_str().parse::<ResourceClassName>();
            check(name.is_ok(), "resource_classes", it.id);
        }
        for it in &rows.traits {
            let name = it.name.as_str().parse::<TraitName>();
            check(name.is_ok(), "traits", it.id);
        }
        for it in &rows.consumer_types {
            let name = it.name.as_str().parse::<ConsumerTypeName>();
            check(name.is_ok(), "consumer_types", it.id);
        }
        for it in &rows.resource_providers {
            check(it.name.is_some(), "resource_providers", it.id);
        }
    }

    /// Checks that roots match parents, and that every chain of parents ends at a root.
    fn trees(&mut self) {
        let Self { rows, faults, .. } = self;
        let providers = rows.resource_providers.iter();
        let roots: BTreeMap<_, _> = providers.map(|it| (it.id, it.root_provider_id)).collect();
        let mut children: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        for it in &rows.resource_providers {
            children
                .entry(it.parent_provider_id)
                .or_default()
                .push(it.id);
            let expected = match it.parent_provider_id {
                None => Some(it.id),
                Some(parent) => roots.get(&parent).copied().flatten(),
            };
            let wrong = match it.root_provider_id {
                None => NO_ROOT,
                root if root != expected => WRONG_ROOT,
                Some(_) => continue,
            };
            faults.note(wrong, || select("resource_providers", it.id));
        }
        let mut waiting = vec![None];
        while let Some(parent) = waiting.pop() {
            let below = children.remove(&parent).unwrap_or_default();
            waiting.extend(below.into_iter().map(Some));
        }
        for id in children.into_values().flatten() {
            faults.note(CIRCLE, || select("resource_providers", id));
        }
    }

    fn allocations(&mut self) {
        let Self { rows, faults, .. } = self;
        let consumers: BTreeSet<_> = rows.consumers.iter().map(|it| &it.uuid).collect();
        let inventories = rows.inventories.iter();
        let stocks: BTreeSet<_> = inventories
            .map(|it| (it.resource_provider_id, it.resource_class_id))
            .collect();
        for it in &rows.allocations {
            if !consumers.contains(&it.consumer_id) {
                faults.note(NO_CONSUMER, || select("allocations", it.id));
            }
            if !stocks.contains(&(it.resource_provider_id, it.resource_class_id)) {
                faults.note(NO_INVENTORY, || select("allocations", it.id));
            }
        }
    }

    /// Merges several allocations of one inventory by one consumer, which the schema does not
    /// prevent, into their sum.
    fn add_up(&mut self) {
        let Self {
            rows,
            faults,
            notes,
        } = self;
        let of = |it: &Allocation| (it.resource_provider_id, it.resource_class_id);
        rows.allocations.sort_by(|one, other| {
            let consumers = one.consumer_id.cmp(&other.consumer_id);
            consumers.then_with(|| of(one).cmp(&of(other)))
        });
        let mut changed = BTreeMap::new();
        for it in &rows.allocations {
            let last = changed
                .entry(it.consumer_id.clone())
                .or_insert(it.modified());
            *last = it.modified().max(*last);
        }
        rows.allocations.dedup_by(|later, first| {
            let same = later.consumer_id == first.consumer_id && of(later) == of(first);
            if same {
                notes.note(DOUBLED, || select("allocations", later.id));
                match first.used.0 + later.used.0 {
                    sum if sum <= i32::MAX as u32 => first.used = Whole(sum),
                    _ => faults.note(TOO_MUCH, || select("allocations", later.id)),
                }
            }
            same
        });
        for it in &mut rows.allocations {
            it.updated_at = changed.get(&it.consumer_id).copied();
        }
        for it in &mut rows.consumers {
            it.updated_at = changed.get(&it.uuid).copied().or(it.updated_at);
        }
    }
}

/// Removes rows that no request shows.
fn leave_out(rows: &mut Rows) {
    let consumers = || rows.consumers.iter();
    let projects: BTreeSet<_> = consumers().map(|it| it.project_id).collect();
    let users: BTreeSet<_> = consumers().map(|it| it.user_id).collect();
    let types: BTreeSet<_> = consumers().filter_map(|it| it.consumer_type_id).collect();
    let members = rows.resource_provider_aggregates.iter();
    let aggregates: BTreeSet<_> = members.map(|it| it.aggregate_id).collect();
    rows.projects.retain(|it| projects.contains(&it.id));
    rows.users.retain(|it| users.contains(&it.id));
    rows.consumer_types.retain(|it| types.contains(&it.id));
    rows.placement_aggregates
        .retain(|it| aggregates.contains(&it.id));
}

fn select(table: &str, id: u32) -> String {
    let table: Option<&Table> = Rows::TABLES.iter().find(|one| one.name == table);
    let table = table.expect("a table has this name");
    table.select([&Sql::Number(id.to_string())])
}
