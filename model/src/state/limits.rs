//! The limits of projects, as they are looked up.

use std::collections::BTreeMap;

use super::change::{LimitsRow, ResourceClassId};
use super::usage_sums::{Quantity, TypeSum, UsageSums};
use super::{State, names::NameTable};
use crate::types::{
    ConsumerTypeName, LimitedResource, Limits, ProjectId, ResourceClassName, ResourceLimits,
};

/// The row of limits with the children of each parent.
#[derive(Debug, PartialEq)]
pub(crate) struct KeptLimits {
    pub(super) row: LimitsRow,
    children: BTreeMap<ProjectId, Vec<ProjectId>>,
}

/// A limit of a project.
pub(crate) struct Limit<'a> {
    pub(crate) resource: &'a LimitedResource,
    pub(crate) quantity: Quantity,
    pub(crate) limit: u64,
    /// Whether the limit is the project's own, which also counts the project's children. A default
    /// does not: it is a limit for one project.
    pub(crate) is_own: bool,
}

impl KeptLimits {
    pub(super) fn new(row: LimitsRow) -> Self {
        let mut children = BTreeMap::<_, Vec<_>>::new();
        for (project, limits) in &row.limits.projects {
            if let Some(parent) = &limits.parent {
                let children = children.entry(parent.clone()).or_default();
                children.push(project.clone());
            }
        }
        Self { row, children }
    }

    pub(crate) fn row(&self) -> &LimitsRow {
        &self.row
    }

    fn limits(&self) -> &Limits {
        &self.row.limits
    }

    pub(crate) fn counts(&self, consumer_type: &Option<ConsumerTypeName>) -> bool {
        self.limits().types.contains(consumer_type)
    }

    pub(crate) fn parent(&self, project: &ProjectId) -> Option<&ProjectId> {
        self.limits().projects.get(project)?.parent.as_ref()
    }

    /// Whether the usage of `member` counts for a limit of the project.
    pub(crate) fn is_member(&self, member: &ProjectId, project: &ProjectId, is_own: bool) -> bool {
        member == project || (is_own && self.parent(member) == Some(project))
    }

    /// Number of children of a project.
    pub(crate) fn children(&self, project: &ProjectId) -> usize {
        self.children.get(project).map_or(0, Vec::len)
    }

    /// The limits of a project, in the order of their resources. Unlimited resources are omitted.
    pub(crate) fn limits_of<'a>(
        &'a self,
        classes: &'a NameTable<ResourceClassName>,
        project: &ProjectId,
    ) -> Vec<Limit<'a>> {
        let own = self.limits().projects.get(project).map(|it| &it.limits);
        let own = own
            .into_iter()
            .flatten()
            .map(|(resource, limit)| (resource, (limit, true)));
        let defaults = self.limits().defaults.iter();
        let defaults = defaults.map(|(resource, limit)| (resource, (limit, false)));
        let limits: BTreeMap<_, _> = defaults.chain(own).collect();
        let limited = |(resource, (limit, is_own)): (&'a LimitedResource, (&Option<u64>, bool))| {
            Some(Limit {
                resource,
                quantity: match resource {
                    LimitedResource::Consumers => Quantity::Consumers,
                    LimitedResource::Class(name) => {
                        Quantity::Units(classes.id(name).map(ResourceClassId))
                    }
                },
                limit: (*limit)?,
                is_own,
            })
        };
        limits.into_iter().filter_map(limited).collect()
    }

    /// The highest number of limits that a project can have.
    pub(crate) fn resources_max(&self, project: &ProjectId) -> usize {
        let own = self.limits().projects.get(project).map(|it| &it.limits);
        self.limits().defaults.len() + own.map_or(0, ResourceLimits::len)
    }

    /// Number of consumer types that count.
    pub(crate) fn types(&self) -> usize {
        self.limits().types.len()
    }

    /// The usage of a project, and of the project with its children, by each type that counts.
    pub(crate) fn usage<'a>(
        &'a self,
        sums: &'a UsageSums,
        project: &'a ProjectId,
    ) -> MeasuredProject<'a> {
        let of = |project: &ProjectId| {
            let sums = sums.get(project, None);
            let types = self.limits().types.iter();
            types.filter_map(move |name| Some(&**sums?.get(name)?))
        };
        let alone: Vec<_> = of(project).collect();
        let children = self.children.get(project).into_iter().flatten();
        let members = alone.iter().copied().chain(children.flat_map(of)).collect();
        MeasuredProject { alone, members }
    }
}

/// The usage of one project. Collected once for all its limits, as a parent may have thousands of
/// children.
pub(crate) struct MeasuredProject<'a> {
    alone: Vec<&'a TypeSum>,
    /// Also the children's.
    members: Vec<&'a TypeSum>,
}

impl MeasuredProject<'_> {
    /// The usage that a limit of the project concerns.
    pub(crate) fn of(&self, limit: &Limit<'_>) -> u64 {
        let sums = if limit.is_own {
            &self.members
        } else {
            &self.alone
        };
        limit.quantity.total(sums.iter().copied())
    }
}

impl State {
    /// A copy of this state without limits, for questions about room.
    #[must_use]
    pub(crate) fn without_limits(&self) -> Self {
        Self {
            limits: None,
            ..self.clone()
        }
    }

    /// The limits of all projects; `None` if none were ever put.
    pub fn limits(&self) -> Option<&LimitsRow> {
        self.kept_limits().map(KeptLimits::row)
    }
}
