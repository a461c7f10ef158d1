//! Running sums of what projects and users take, per consumer type.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;

use super::change::{ConsumerRow, ResourceClassId};
use crate::types::{ConsumerTypeName, ProjectId, UserId};

/// What consumers of one type take together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TypeSum {
    /// Distinct consumers that hold something.
    pub(crate) consumers: u64,
    /// Units per class; a class that nobody holds is left out.
    pub(crate) units: BTreeMap<ResourceClassId, u64>,
}

/// Per consumer type; types that take nothing are left out.
pub(crate) type Sums = BTreeMap<Option<ConsumerTypeName>, TypeSum>;

/// Sums per project, and per user within a project. Shared one by one: a map that is written to
/// copies the entries that stand beside the one it writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct UsageSums {
    projects: OrdMap<ProjectId, Arc<Sums>>,
    users: OrdMap<(ProjectId, UserId), Arc<Sums>>,
}

impl UsageSums {
    pub(crate) fn of(&self, project: &ProjectId, user: Option<&UserId>) -> Option<&Sums> {
        match user {
            None => self.projects.get(project).map(|sums| &**sums),
            Some(user) => self
                .users
                .get(&(project.clone(), user.clone()))
                .map(|sums| &**sums),
        }
    }

    /// Counts what a consumer holds in.
    pub(crate) fn add(&mut self, row: &ConsumerRow) {
        if row.allocations.is_empty() {
            return;
        }
        add_to(self.projects.entry(row.project.clone()).or_default(), row);
        add_to(
            self.users
                .entry((row.project.clone(), row.user.clone()))
                .or_default(),
            row,
        );
    }

    /// Takes out what a consumer held.
    pub(crate) fn remove(&mut self, row: &ConsumerRow) {
        if row.allocations.is_empty() {
            return;
        }
        let sums = self.projects.get_mut(&row.project).expect(COUNTED);
        remove_from(sums, row);
        if sums.is_empty() {
            self.projects.remove(&row.project);
        }
        let key = (row.project.clone(), row.user.clone());
        let sums = self.users.get_mut(&key).expect(COUNTED);
        remove_from(sums, row);
        if sums.is_empty() {
            self.users.remove(&key);
        }
    }
}

/// What a consumer held is in the sums until it is taken out.
const COUNTED: &str = "what a consumer held was counted in";

fn add_to(sums: &mut Arc<Sums>, row: &ConsumerRow) {
    let sum = Arc::make_mut(sums)
        .entry(row.consumer_type.clone())
        .or_default();
    sum.consumers += 1;
    for (class, amount) in row.allocations.values().flatten() {
        let units = sum.units.entry(*class).or_default();
        *units += *amount;
    }
}

fn remove_from(sums: &mut Arc<Sums>, row: &ConsumerRow) {
    let sums = Arc::make_mut(sums);
    let sum = sums.get_mut(&row.consumer_type).expect(COUNTED);
    sum.consumers = sum.consumers.checked_sub(1).expect(COUNTED);
    for (class, amount) in row.allocations.values().flatten() {
        let Some(units) = sum.units.get_mut(class) else {
            assert_eq!(*amount, 0, "{COUNTED}");
            continue;
        };
        *units = units.checked_sub(*amount).expect(COUNTED);
        if *units == 0 {
            sum.units.remove(class);
        }
    }
    if sum.consumers == 0 {
        sums.remove(&row.consumer_type);
    }
}
