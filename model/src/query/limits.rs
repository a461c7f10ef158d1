//! The usage of projects and their limits, one page at a time.

use std::ops::Bound::{Excluded, Unbounded};

use crate::state::State;
use crate::types::{LimitedResource, ProjectId};

/// Selects projects. A project must satisfy every condition that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitFilter {
    /// This project.
    pub project: Option<ProjectId>,
    /// Only resources whose usage is above the limit.
    pub over: bool,
}

/// One page of projects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitPage {
    /// Projects in the order of their ids.
    pub projects: Vec<LimitedProject>,
    /// The next page begins after this project, even if this page is empty; `None` on the last
    /// page.
    pub next: Option<ProjectId>,
}

/// A project with its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitedProject {
    /// The project.
    pub project: ProjectId,
    /// The project whose limits also apply.
    pub parent: Option<ProjectId>,
    /// The limited resources, sorted.
    pub resources: Vec<LimitUsage>,
}

/// The usage of a limited resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitUsage {
    /// The limited resource.
    pub resource: LimitedResource,
    /// The usage of the project. If the limit is the project's own, also that of its children.
    pub used: u64,
    /// The highest usage.
    pub limit: u64,
}

impl State {
    /// Returns the first `limit` projects after `after` that have selected resources: projects with
    /// usage, and those that the limits name. The page ends early once `sums_max` sums are
    /// examined: a project counts as one, and so does each of its children.
    pub fn limit_usages(
        &self,
        filter: &LimitFilter,
        after: Option<&ProjectId>,
        limit: usize,
        sums_max: usize,
    ) -> LimitPage {
        let mut page = LimitPage::default();
        let Some(limits) = self.kept_limits() else {
            return page;
        };
        let named = &limits.row().limits.projects;
        let sums = self.consumers.sums();
        if let Some(project) = &filter.project {
            if named.contains_key(project) || sums.get(project, None).is_some() {
                page.projects.extend(self.limited(filter, project));
            }
            return page;
        }
        let mut last = after.cloned();
        let mut walked = 0;
        loop {
            let range = (last.as_ref().map_or(Unbounded, Excluded), Unbounded);
            let named = named.range(range).next().map(|(project, _)| project);
            let used = sums.project_after(last.as_ref());
            let Some(project) = named.into_iter().chain(used).min().cloned() else {
                return page;
            };
            if page.projects.len() >= limit || walked >= sums_max {
                page.next = last;
                return page;
            }
            walked += 1 + limits.children(&project);
            page.projects.extend(self.limited(filter, &project));
            last = Some(project);
        }
    }

    fn limited(&self, filter: &LimitFilter, project: &ProjectId) -> Option<LimitedProject> {
        let limits = self.kept_limits()?;
        let usage = limits.usage(self.consumers.sums(), project);
        let resources = limits.limits_of(&self.resource_classes, project);
        let resources = resources.into_iter().map(|limit| LimitUsage {
            resource: limit.resource.clone(),
            used: usage.of(&limit),
            limit: limit.limit,
        });
        let resources: Vec<_> = resources
            .filter(|it| !filter.over || it.used > it.limit)
            .collect();
        (!resources.is_empty()).then(|| LimitedProject {
            project: project.clone(),
            parent: limits.parent(project).cloned(),
            resources,
        })
    }
}
