//! Changes of limits: the rows that `sync` prints, and the lines of its plan.

use std::borrow::Cow;
use std::collections::BTreeSet;

use anyhow::ensure;
use placement_wire::limits::{Limits, ProjectLimits, ResourceLimits};
use serde::{Deserialize, Serialize};

use super::conversion::Copied;
use crate::render::Rows;

/// Stands for a parent in place of a limited resource, and is the name of no resource.
const PARENT: &str = "parent";
const UNLIMITED: &str = "unlimited";

/// A change of one limit, or of a parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// Project; `None` for the defaults of all projects.
    project: Option<String>,
    /// Limited resource, or `parent`.
    resource: String,
    before: Setting,
    after: Setting,
    /// Generation of the limits before the change.
    generation: i64,
}

/// A limit, or the id of a parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Setting {
    Unset,
    Limit(u64),
    /// `unlimited`, or the id of a parent.
    Text(String),
}

impl Setting {
    fn of_limit(limit: Option<&Option<u64>>) -> Self {
        match limit {
            None => Self::Unset,
            Some(Some(limit)) => Self::Limit(*limit),
            Some(None) => Self::Text(UNLIMITED.to_owned()),
        }
    }

    fn of_parent(parent: Option<&str>) -> Self {
        parent.map_or(Self::Unset, |parent| Self::Text(parent.to_owned()))
    }

    fn can_be_limit(&self) -> bool {
        match self {
            Self::Unset | Self::Limit(_) => true,
            Self::Text(text) => text == UNLIMITED,
        }
    }

    fn can_be_parent(&self) -> bool {
        match self {
            Self::Unset => true,
            Self::Limit(_) => false,
            Self::Text(text) => !text.is_empty(),
        }
    }
}

impl Change {
    /// What is wrong with a line.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        let both = [&self.before, &self.after];
        let is_right = match (&*self.resource, &self.project) {
            (PARENT, Some(_)) => both.into_iter().all(Setting::can_be_parent),
            (PARENT, None) => false,
            _ => both.into_iter().all(Setting::can_be_limit),
        };
        let right = "a limit is a number, \"unlimited\" or null; only a project has a parent, which is a text or null";
        (!is_right).then_some(right)
    }

    /// The word for the change.
    pub(crate) fn kind(&self) -> &'static str {
        match (&self.before, &self.after) {
            (Setting::Unset, _) => "added",
            (_, Setting::Unset) => "removed",
            _ => "changed",
        }
    }

    /// Whether these limits have the new value already.
    fn is_done(&self, limits: &Limits<'_>) -> bool {
        let now = match &self.project {
            None => Setting::of_limit(limits.defaults.get(&*self.resource)),
            Some(project) => {
                let of_project = limits.projects.get(&**project);
                if self.resource == PARENT {
                    Setting::of_parent(of_project.and_then(|one| one.parent.as_deref()))
                } else {
                    let limit = of_project.and_then(|one| one.limits.get(&*self.resource));
                    Setting::of_limit(limit)
                }
            }
        };
        now == self.after
    }

    fn carry_out(&self, limits: &mut Limits<'static>) {
        let owned = |text: &str| Cow::<'static, str>::Owned(text.to_owned());
        let resources = match &self.project {
            None => &mut limits.defaults,
            Some(project) => {
                let one = limits.projects.entry(owned(project)).or_default();
                if self.resource == PARENT {
                    one.parent = match &self.after {
                        Setting::Text(parent) => Some(owned(parent)),
                        _ => None,
                    };
                    return;
                }
                &mut one.limits
            }
        };
        let limit = match self.after {
            Setting::Unset => {
                resources.remove(&*self.resource);
                return;
            }
            Setting::Limit(limit) => Some(limit),
            Setting::Text(_) => None,
        };
        resources.insert(owned(&self.resource), limit);
    }
}

/// The changes from these limits to those of Keystone.
pub(crate) fn changes(now: &Limits<'_>, copied: &Copied) -> Vec<Change> {
    let mut found = Changes {
        generation: now.generation,
        all: Vec::new(),
    };
    found.add_limits(None, &now.defaults, &copied.defaults);
    let ids = now.projects.keys().map(|id| &**id);
    let ids: BTreeSet<&str> = ids.chain(copied.projects.keys().map(|id| &**id)).collect();
    let none = ProjectLimits::default();
    for id in ids {
        let before = now.projects.get(id).unwrap_or(&none);
        let after = copied.projects.get(id).unwrap_or(&none);
        let parents = [before, after].map(|one| Setting::of_parent(one.parent.as_deref()));
        found.add(Some(id), PARENT, parents);
        found.add_limits(Some(id), &before.limits, &after.limits);
    }
    found.all
}

struct Changes {
    generation: i64,
    all: Vec<Change>,
}

impl Changes {
    /// Adds a change of the limits of a project for each resource.
    fn add_limits(
        &mut self,
        project: Option<&str>,
        before: &ResourceLimits<'_>,
        after: &ResourceLimits<'_>,
    ) {
        let resources = before.keys().map(|resource| &**resource);
        let resources: BTreeSet<&str> = resources
            .chain(after.keys().map(|resource| &**resource))
            .collect();
        for resource in resources {
            let settings = [before.get(resource), after.get(resource)].map(Setting::of_limit);
            self.add(project, resource, settings);
        }
    }

    /// Adds a change unless both settings are equal.
    fn add(&mut self, project: Option<&str>, resource: &str, [before, after]: [Setting; 2]) {
        if before != after {
            self.all.push(Change {
                project: project.map(str::to_owned),
                resource: resource.to_owned(),
                before,
                after,
                generation: self.generation,
            });
        }
    }
}

/// The changes of a plan that these limits do not have yet.
///
/// # Errors
/// The limits have changed since the plan was written.
pub(crate) fn left(now: &Limits<'_>, mut plan: Vec<Change>) -> anyhow::Result<Vec<Change>> {
    plan.retain(|one| !one.is_done(now));
    for one in &plan {
        ensure!(
            one.generation == now.generation,
            "the limits have changed since the plan was written: their generation is {}, and the plan is for {}. Nothing \
             was changed; write a new plan",
            now.generation,
            one.generation
        );
    }
    Ok(plan)
}

/// Carries out changes. A project without limits of its own and without a parent is removed, unless
/// it is the parent of another one.
pub(crate) fn carry_out(limits: &mut Limits<'static>, changes: &[Change]) {
    for one in changes {
        one.carry_out(limits);
    }
    let projects = &mut limits.projects;
    let parents: BTreeSet<_> = projects
        .values()
        .filter_map(|one| one.parent.clone())
        .collect();
    projects.retain(|project, one| {
        one.parent.is_some() || !one.limits.is_empty() || parents.contains(project)
    });
}

/// A row for each change.
pub(crate) fn listed(changes: Vec<Change>) -> Rows<Change> {
    Rows::new(changes)
        .column("project", |row| row.project.clone())
        .shown_as(|row, _| row.project.is_none().then(|| "(defaults)".to_owned()))
        .column("resource", |row| row.resource.clone())
        .column("change", Change::kind)
        .column("before", |row| row.before.clone())
        .column("after", |row| row.after.clone())
}
