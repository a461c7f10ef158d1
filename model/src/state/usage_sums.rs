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
    /// Units per class; a class that no consumer holds is left out.
    pub(crate) units: BTreeMap<ResourceClassId, u64>,
}

impl TypeSum {
    /// Counts in what a consumer holds.
    pub(crate) fn add(&mut self, row: &ConsumerRow) {
        self.consumers += 1;
        for amount in &row.allocations {
            let units = self.units.entry(amount.class).or_default();
            *units += amount.units;
        }
    }

    fn add_sum(&mut self, sum: &Self) {
        self.consumers += sum.consumers;
        for (class, more) in &sum.units {
            let units = self.units.entry(*class).or_default();
            *units += more;
        }
    }
}

/// What distinguishes sums.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) project: ProjectId,
    pub(crate) user: UserId,
    pub(crate) consumer_type: Option<ConsumerTypeName>,
}

impl Owner {
    /// Who is charged for a consumer.
    pub(crate) fn of(row: &ConsumerRow) -> Self {
        Self {
            project: row.project.clone(),
            user: row.user.clone(),
            consumer_type: row.consumer_type.clone(),
        }
    }

    /// Gives a consumer of this owner the owner's texts in place of its own.
    pub(crate) fn share_texts(&self, row: &mut ConsumerRow) {
        row.project = self.project.clone();
        row.user = self.user.clone();
        row.consumer_type = self.consumer_type.clone();
    }
}

/// Per consumer type; types that take nothing are left out. Clients name types as they like, so that a
/// project may have any number of them: a write copies those that it is about.
pub(crate) type Sums = OrdMap<Option<ConsumerTypeName>, Arc<TypeSum>>;

/// What one project takes, and each of its users.
#[derive(Debug, Clone, PartialEq, Default)]
struct Project {
    sums: Sums,
    users: OrdMap<UserId, Arc<Sums>>,
}

/// Sums per project, and per user within a project. Shared one by one: a map that is written to
/// copies the entries that stand beside the one it writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct UsageSums {
    projects: OrdMap<ProjectId, Arc<Project>>,
}

/// From what the consumers of each owner hold together.
impl FromIterator<(Owner, TypeSum)> for UsageSums {
    fn from_iter<I: IntoIterator<Item = (Owner, TypeSum)>>(owners: I) -> Self {
        let mut projects: BTreeMap<_, (Sums, BTreeMap<_, Sums>)> = BTreeMap::new();
        for (owner, sum) in owners {
            let (sums, users) = projects.entry(owner.project).or_default();
            let of_project = sums.entry(owner.consumer_type.clone()).or_default();
            Arc::make_mut(of_project).add_sum(&sum);
            let of_user = users.entry(owner.user).or_default();
            of_user.insert(owner.consumer_type, Arc::new(sum));
        }
        let user = |(name, sums)| (name, Arc::new(sums));
        let project = |(name, (sums, users)): (_, (_, BTreeMap<_, _>))| {
            let users = users.into_iter().map(user).collect();
            (name, Arc::new(Project { sums, users }))
        };
        Self {
            projects: projects.into_iter().map(project).collect(),
        }
    }
}

impl UsageSums {
    pub(crate) fn of(&self, project: &ProjectId, user: Option<&UserId>) -> Option<&Sums> {
        let project = self.projects.get(project)?;
        match user {
            None => Some(&project.sums),
            Some(user) => project.users.get(user).map(|sums| &**sums),
        }
    }

    /// Counts what a consumer holds in, and makes its row share its texts with those of its project
    /// that were counted in before: there are millions of consumers, and few texts.
    pub(crate) fn add(&mut self, row: &mut ConsumerRow) {
        if row.allocations.is_empty() {
            return;
        }
        if let Some((name, project)) = self.projects.get_key_value_mut(&row.project) {
            row.project = name.clone();
            Arc::make_mut(project).add(row);
        } else {
            let mut project = Project::default();
            project.add(row);
            self.projects.insert(row.project.clone(), Arc::new(project));
        }
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

impl Project {
    fn add(&mut self, row: &mut ConsumerRow) {
        if let Some((name, _)) = self.sums.get_key_value(&row.consumer_type) {
            row.consumer_type = name.clone();
        }
        add_to(&mut self.sums, row);
        if let Some((name, user)) = self.users.get_key_value_mut(&row.user) {
            row.user = name.clone();
            add_to(Arc::make_mut(user), row);
        } else {
            let mut user = Sums::new();
            add_to(&mut user, row);
            self.users.insert(row.user.clone(), Arc::new(user));
        }
    }
}

/// What a consumer held is in the sums until it is taken out.
const COUNTED: &str = "what a consumer held was counted in";

fn add_to(sums: &mut Sums, row: &ConsumerRow) {
    let sum = sums.entry(row.consumer_type.clone()).or_default();
    Arc::make_mut(sum).add(row);
}

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
