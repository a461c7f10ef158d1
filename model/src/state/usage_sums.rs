//! Running usage sums of projects and users, per consumer type.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use imbl::OrdMap;

use super::change::{Amounts, ConsumerRow, ResourceClassId};
use crate::types::{ConsumerTypeName, ProjectId, UserId};

/// The total usage of consumers of one type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TypeSum {
    /// Number of consumers with allocations.
    pub(crate) consumers: u64,
    /// Units per class. Classes without usage are omitted.
    pub(crate) units: BTreeMap<ResourceClassId, u64>,
}

impl TypeSum {
    pub(crate) fn add(&mut self, amounts: &Amounts) {
        self.consumers += 1;
        for amount in amounts {
            *self.units.entry(amount.class).or_default() += amount.units;
        }
    }
}

/// A quantity that limits count.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Quantity {
    /// The number of consumers with allocations.
    Consumers,
    /// Units of a class; `None` if it does not exist.
    Units(Option<ResourceClassId>),
}

impl Quantity {
    /// The quantity in all these sums.
    pub(crate) fn total<'a>(self, sums: impl Iterator<Item = &'a TypeSum>) -> u64 {
        let one = |sum: &TypeSum| match self {
            Self::Consumers => sum.consumers,
            Self::Units(class) => class
                .and_then(|it| sum.units.get(&it))
                .copied()
                .unwrap_or(0),
        };
        sums.map(one).fold(0, u64::saturating_add)
    }
}

/// Sums per consumer type. Types without usage are omitted. Clients choose the names, so a project
/// may have any number of types; therefore a write copies only the affected entries.
pub(crate) type Sums = OrdMap<Option<ConsumerTypeName>, Arc<TypeSum>>;

/// The usage of one project, and of each of its users.
#[derive(Debug, Clone, PartialEq, Default)]
struct Project {
    sums: Sums,
    users: OrdMap<UserId, Arc<Sums>>,
}

/// Sums per project, and per user within a project. Each value is in its own `Arc`, because
/// modifying an entry also clones its neighbors in the map.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct UsageSums {
    projects: OrdMap<ProjectId, Arc<Project>>,
}

impl UsageSums {
    pub(crate) fn get(&self, project: &ProjectId, user: Option<&UserId>) -> Option<&Sums> {
        let project = self.projects.get(project)?;
        match user {
            None => Some(&project.sums),
            Some(user) => project.users.get(user).map(|sums| &**sums),
        }
    }

    /// The first project with usage, or the first one after `after`.
    pub(crate) fn project_after(&self, after: Option<&ProjectId>) -> Option<&ProjectId> {
        let range = (after.map_or(Unbounded, Excluded), Unbounded);
        let mut projects = self.projects.range::<_, ProjectId>(range);
        projects.next().map(|(project, _)| project)
    }

    pub(crate) fn per_project(&self) -> impl Iterator<Item = &Sums> {
        self.projects.values().map(|project| &project.sums)
    }

    /// Adds a consumer's allocations, and makes its row share texts with earlier consumers of its
    /// project: there are millions of consumers, and few different texts.
    pub(crate) fn add(&mut self, row: &mut ConsumerRow) {
        if row.allocations.is_empty() {
            return;
        }
        change(&mut self.projects, &mut row.project, |project| {
            let consumer_type = &mut row.consumer_type;
            change(&mut project.sums, consumer_type, |sum| {
                sum.add(&row.allocations);
            });
            change(&mut project.users, &mut row.user, |sums| {
                change(sums, consumer_type, |sum| sum.add(&row.allocations));
            });
        });
    }

    /// Subtracts a consumer's allocations.
    pub(crate) fn remove(&mut self, row: &ConsumerRow) {
        if row.allocations.is_empty() {
            return;
        }
        let project = self.projects.get_mut(&row.project).expect(COUNTED);
        let project = Arc::make_mut(project);
        let user = Arc::make_mut(project.users.get_mut(&row.user).expect(COUNTED));
        remove_from(user, row);
        if user.is_empty() {
            project.users.remove(&row.user);
        }
        remove_from(&mut project.sums, row);
        if project.sums.is_empty() {
            self.projects.remove(&row.project);
        }
    }
}

/// Changes the value of a key, which is inserted if missing. `key` is replaced by the equal key in
/// the map, so that both share memory.
fn change<K: Ord + Clone, V: Clone + Default>(
    map: &mut OrdMap<K, Arc<V>>,
    key: &mut K,
    change: impl FnOnce(&mut V),
) {
    if let Some((known, value)) = map.get_key_value_mut(key) {
        *key = known.clone();
        change(Arc::make_mut(value));
    } else {
        let mut value = V::default();
        change(&mut value);
        map.insert(key.clone(), Arc::new(value));
    }
}

const COUNTED: &str = "the sums contain the allocations of every consumer";

fn remove_from(sums: &mut Sums, row: &ConsumerRow) {
    let sum = Arc::make_mut(sums.get_mut(&row.consumer_type).expect(COUNTED));
    sum.consumers = sum.consumers.checked_sub(1).expect(COUNTED);
    for amount in &row.allocations {
        let Some(units) = sum.units.get_mut(&amount.class) else {
            assert_eq!(amount.units, 0, "{COUNTED}");
            continue;
        };
        *units = units.checked_sub(amount.units).expect(COUNTED);
        if *units == 0 {
            sum.units.remove(&amount.class);
        }
    }
    if sum.consumers == 0 {
        sums.remove(&row.consumer_type);
    }
}
