//! Limits of projects. The usage of every project is added up over all consumers, before and after
//! a write of allocations.

use std::collections::BTreeSet;
use std::sync::Arc;

use placement_model::command::{Ceiling, ConsumerAllocations, Counted, ReplaceLimits};
use placement_model::outcome::{Outcome, Refusal, Reply};
use placement_model::query::limits::{LimitFilter, LimitUsage, LimitedProject};
use placement_model::state::change::LimitsRow;
use placement_model::types::{
    Generation, Given, LimitExcess, LimitMode, LimitedResource, Limits, ProjectId, ResourceLimits,
    Timestamp,
};

use super::{ApplyResult, Naive, refuse_if};

impl Naive {
    pub(super) fn replace_limits(&mut self, at: Timestamp, replace: &ReplaceLimits) -> ApplyResult {
        let (given, actual) = (replace.generation, self.limits.generation);
        refuse_if(given != actual, || Refusal::LimitsGenerationConflict {
            given,
            actual,
        })?;
        let generation = Generation(actual.0 + 1);
        self.limits = Arc::new(LimitsRow {
            generation,
            updated_at: at,
            limits: replace.limits.clone(),
        });
        Ok(Reply::LimitsWritten { generation })
    }

    /// Removes all limits.
    pub fn forget_limits(&mut self) {
        self.limits = Arc::default();
    }

    /// `POST /allocations`, of whose checks that of the limits is the last one.
    pub(super) fn write_within_limits(
        &mut self,
        at: Timestamp,
        consumers: &[ConsumerAllocations],
    ) -> Outcome {
        let update = self.hold_update(consumers);
        let mut after = self.clone();
        match after.write_allocations(at, &[], consumers, &update) {
            Outcome::Done(reply) => match after.check_limits(self, reply) {
                Ok(reply) => {
                    *self = after;
                    Outcome::Done(reply)
                }
                Err(refusal) => Outcome::Refused(refusal),
            },
            // New consumers may remain.
            refused => {
                *self = after;
                refused
            }
        }
    }

    /// Decides a write after which this is the state, and that has this reply without limits.
    pub(super) fn check_limits(&self, before: &Self, reply: Reply) -> ApplyResult {
        let mut excesses = self.excesses(before);
        if excesses.is_empty() {
            return Ok(reply);
        }
        match before.limits.limits.mode {
            LimitMode::Enforce => Err(Refusal::OverLimit(excesses.remove(0))),
            LimitMode::Report => {
                excesses.truncate(LimitExcess::MOST);
                let reply = Box::new(reply);
                Ok(Reply::OverLimits { reply, excesses })
            }
        }
    }

    /// The limits of an earlier state that a later usage is above, unless the usage has not grown.
    pub fn excesses(&self, before: &Self) -> Vec<LimitExcess> {
        let limits = &before.limits.limits;
        let mut projects = named(limits);
        projects.extend(self.consumers.values().map(|row| row.project.clone()));
        let mut excesses = Vec::new();
        for project in projects {
            for (resource, limit) in limits_of(limits, &project) {
                let Some(limit) = limit else { continue };
                let of = ceiling(limits, &project, &resource);
                let [used, requested] = [before, self].map(|naive| naive.counted(&of, |_| true));
                if requested > limit && requested > used {
                    excesses.push(LimitExcess {
                        project: project.clone(),
                        resource,
                        used,
                        requested,
                        limit,
                    });
                }
            }
        }
        excesses
    }

    /// `GET /placementd/v1/limits/usage`, all pages.
    pub fn limit_usages(&self, filter: &LimitFilter) -> Vec<LimitedProject> {
        let limits = &self.limits.limits;
        let holders: BTreeSet<_> = self.allocations.keys().map(|(uuid, _, _)| uuid).collect();
        let mut projects: BTreeSet<_> = limits.projects.keys().cloned().collect();
        projects.extend(
            holders
                .into_iter()
                .map(|uuid| self.consumers[uuid].project.clone()),
        );
        if let Some(project) = &filter.project {
            projects.retain(|one| one == project);
        }
        let mut found = Vec::new();
        for project in projects {
            let mut resources = Vec::new();
            for (resource, limit) in limits_of(limits, &project) {
                let Some(limit) = limit else { continue };
                let used = self.counted(&ceiling(limits, &project, &resource), |_| true);
                if !filter.over || used > limit {
                    resources.push(LimitUsage {
                        resource,
                        used,
                        limit,
                    });
                }
            }
            if !resources.is_empty() {
                let own = limits.projects.get(&project);
                let parent = own.and_then(|own| own.parent.clone());
                found.push(LimitedProject {
                    project,
                    parent,
                    resources,
                });
            }
        }
        found
    }
}

/// The projects in a document of limits, parents included.
fn named(limits: &Limits) -> BTreeSet<ProjectId> {
    let mut projects = BTreeSet::new();
    for (project, own) in &limits.projects {
        projects.insert(project.clone());
        projects.extend(own.parent.clone());
    }
    projects
}

/// The limits of a project, in the order of the resources.
fn limits_of(limits: &Limits, project: &ProjectId) -> ResourceLimits {
    let mut all = limits.defaults.clone();
    if let Some(own) = limits.projects.get(project) {
        all.extend(own.limits.clone());
    }
    all
}

/// A ceiling that counts what a limit counts. Children count for a limit that is their parent's
/// own, and not for a default.
fn ceiling(limits: &Limits, project: &ProjectId, resource: &LimitedResource) -> Ceiling {
    let own = limits.projects.get(project);
    let is_own = own.is_some_and(|own| own.limits.contains_key(resource));
    let mut projects = BTreeSet::from([project.clone()]);
    for (child, own) in &limits.projects {
        if is_own && own.parent.as_ref() == Some(project) {
            projects.insert(child.clone());
        }
    }
    Ceiling {
        projects,
        types: Some(limits.types.clone()),
        of: match resource {
            LimitedResource::Consumers => Counted::Consumers,
            LimitedResource::Class(name) => Counted::Units(Given::Valid(name.clone())),
        },
        limit: 0,
    }
}
