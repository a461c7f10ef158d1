//! Running sums of what projects and users take, per consumer type.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;

use super::change::{Amounts, ConsumerRow, ResourceClassId};
use crate::types::{ConsumerTypeName, ProjectId, UserId};

/// What consumers of one type take together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TypeSum {
    /// Distinct consumers that hold something.
    pub(crate) consumers: u64,
    /// Units per class; a class that no consumer holds is left out.
    pub(crate) units: BTreeMap<ResourceClassId, u64>,
}

impl TypeSum {
    fn add(&mut self, amounts: &Amounts) {
        self.consumers += 1;
        for amount in amounts {
            *self.units.entry(amount.class).or_default() += amount.units;
        }
    }
}

/// Per consumer type; types that take nothing are left out. Clients name types as they like, so
/// that a project may have any number of them: a write copies those that it is about.
pub(crate) type Sums = OrdMap<Option<ConsumerTypeName>, Arc<TypeSum>>;

/// What one project takes, and each of its users.
#[derive(Debug, Clone, PartialEq, Default)]
struct Project {
    sums: Sums,
    users: OrdMap<UserId, Arc<Sums>>,
}

/// Sums per project, and per user within a project. Shared one by one: a map that is written to
/// copies the neighbours of the entry that it writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct UsageSums {
    projects: OrdMap<ProjectId, Arc<Project>>,
}

impl UsageSums {
    pub(crate) fn of(&self, project: &ProjectId, user: Option<&UserId>) -> Option<&Sums> {
        let project = self.projects.get(project)?;
        match user {
            None => Some(&project.sums),
            Some(user) => project.users.get(user).map(|sums| &**sums),
        }
    }

    pub(crate) fn of_projects(&self) -> impl Iterator<Item = &Sums> {
        self.projects.values().map(|project| &project.sums)
    }

    /// Counts what a consumer holds in, and makes its row share its texts with those of its project
    /// that were counted in before: there are millions of consumers, and few texts.
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

    /// Takes out what a consumer held.
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

/// Changes what is under a key, or under a new one; the key becomes the equal one that is there.
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

/// What a consumer held is in the sums until it is taken out.
const COUNTED: &str = "what a consumer held was counted in";

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
