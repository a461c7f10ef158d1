//! Conversion of Keystone's limits into limits of this service.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail, ensure};
use placement_wire::limits::{CONSUMERS, ProjectLimits, ResourceLimits};
use serde_json::Value;

use super::keystone::Answers;
use crate::render::first_names;

/// Type of the service whose limits are copied.
const COMPUTE: &str = "compute";
/// Nova's name for the number of servers.
const SERVERS: &str = "servers";
/// Beginning of Nova's names for amounts of resource classes.
const CLASS: &str = "class:";
/// Value of an unlimited resource in Keystone.
const UNLIMITED: i64 = -1;
/// Maximum length of the name of a resource class.
const CLASS_CHARACTERS_MAX: usize = 255;

/// The limits in Keystone of one service and region.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) defaults: ResourceLimits<'static>,
    pub(crate) projects: BTreeMap<Cow<'static, str>, ProjectLimits<'static>>,
    /// Number of limits by resource that allocations do not contain, such as `server_groups`.
    skipped: BTreeMap<String, usize>,
}

impl Copied {
    /// A note about the limits that are not copied.
    pub(crate) fn note(&self) -> Option<String> {
        let count: usize = self.skipped.values().sum();
        let names = first_names(self.skipped.keys().map(String::as_str));
        (count > 0).then(|| {
            format!("skipped {count} limits of resources that are not in allocations: {names}")
        })
    }

    /// The name of a resource here. Limits of other resources are counted.
    fn resource(&mut self, name: &str) -> Option<Cow<'static, str>> {
        let known = match name.strip_prefix(CLASS) {
            Some(class) => is_class(class).then(|| owned(class)),
            None => (name == SERVERS).then_some(Cow::Borrowed(CONSUMERS)),
        };
        if known.is_none() {
            *self.skipped.entry(name.to_owned()).or_default() += 1;
        }
        known
    }

    fn add_default(&mut self, one: &Found<'_>) -> anyhow::Result<()> {
        let Some(resource) = self.resource(one.resource) else {
            return Ok(());
        };
        let earlier = self.defaults.insert(resource, one.limit);
        let resource = one.resource;
        ensure!(
            earlier.is_none(),
            "Keystone has two registered limits of {resource:?}"
        );
        Ok(())
    }

    fn add(&mut self, project: &str, one: &Found<'_>) -> anyhow::Result<()> {
        let Some(resource) = self.resource(one.resource) else {
            return Ok(());
        };
        let limits = self.projects.entry(owned(project)).or_default();
        let earlier = limits.limits.insert(resource, one.limit);
        let resource = one.resource;
        ensure!(
            earlier.is_none(),
            "Keystone has two limits of {resource:?} for project {project:?}"
        );
        Ok(())
    }

    /// Gives each project its parent, if the parent has limits.
    fn add_parents(&mut self, projects: &[Value]) -> anyhow::Result<()> {
        let with_limits: BTreeSet<_> = self.projects.keys().cloned().collect();
        each(projects, "projects", |entry| {
            let (project, parent) = (entry.text("id")?, entry.nullable("parent_id")?);
            if let Some(parent) = parent.filter(|parent| with_limits.contains(*parent)) {
                let limits = self.projects.entry(owned(project)).or_default();
                limits.parent = Some(owned(parent));
            }
            Ok(())
        })?;
        let parent_of = |project: &str| self.projects.get(project)?.parent.as_deref();
        for project in self.projects.keys() {
            if let Some(parent) = parent_of(project)
                && let Some(above) = parent_of(parent)
            {
                bail!(
                    "the limits in Keystone have three levels: project {project:?} has the parent {parent:?}, which \
                     has the parent {above:?}"
                );
            }
        }
        Ok(())
    }
}

/// Converts the limits of the service `compute`. Without `region`, all must be of the same region.
pub(crate) fn convert(answers: &Answers, region: Option<&str>) -> anyhow::Result<Copied> {
    let services = each(&answers.services, "services", |entry| {
        Ok((entry.text("id")?, entry.text("type")?))
    })?;
    let services = services.into_iter().filter(|(_, kind)| *kind == COMPUTE);
    let services: BTreeSet<_> = services.map(|(id, _)| id).collect();
    ensure!(
        !services.is_empty(),
        "Keystone has no service of the type {COMPUTE}"
    );
    let mut defaults = each(&answers.registered_limits, "registered_limits", |entry| {
        Found::read(entry, "default_limit")
    })?;
    let mut limits = each(&answers.limits, "limits", |entry| {
        let project = entry.optional("project_id")?;
        let domain = entry.optional("domain_id")?;
        let owner = match (project, domain) {
            (Some(owner), None) | (None, Some(owner)) => owner,
            _ => bail!("it must have either \"project_id\" or \"domain_id\""),
        };
        Ok((owner, Found::read(entry, "resource_limit")?))
    })?;
    defaults.retain(|one| services.contains(one.service));
    let service = only_service(&defaults)?;
    let region = chosen_region(&defaults, region)?;
    let is_meant = |one: &Found<'_>| one.service == service && one.region == region;
    defaults.retain(is_meant);
    limits.retain(|(_, one)| is_meant(one));

    let mut copied = Copied::default();
    for one in &defaults {
        copied.add_default(one)?;
    }
    for (owner, one) in &limits {
        copied.add(owner, one)?;
    }
    if let Some(projects) = &answers.projects {
        copied.add_parents(projects)?;
    }
    Ok(copied)
}

/// The service that has registered limits.
fn only_service<'a>(defaults: &[Found<'a>]) -> anyhow::Result<&'a str> {
    let services: BTreeSet<_> = defaults.iter().map(|one| one.service).collect();
    let services: Vec<_> = services.into_iter().collect();
    match &services[..] {
        [service] => Ok(*service),
        [] => bail!("Keystone has no registered limits of a service of the type {COMPUTE}"),
        _ => bail!(
            "Keystone has registered limits of several services of the type {COMPUTE}: {}",
            first_names(services.iter().copied())
        ),
    }
}

/// The region whose limits are copied: the given one, or else the only one.
fn chosen_region<'a>(
    defaults: &[Found<'a>],
    given: Option<&'a str>,
) -> anyhow::Result<Option<&'a str>> {
    let regions: BTreeSet<_> = defaults.iter().map(|one| one.region).collect();
    let regions: Vec<_> = regions.into_iter().collect();
    let names = || first_names(regions.iter().map(|region| region.unwrap_or("(no region)")));
    match (given, &regions[..]) {
        (Some(_), _) if regions.contains(&given) => Ok(given),
        (Some(given), _) => bail!(
            "Keystone has no registered limits of the region {given:?}, but of {}",
            names()
        ),
        (None, [region]) => Ok(*region),
        (None, _) => bail!(
            "Keystone has registered limits of several regions: {}. Choose one with --region",
            names()
        ),
    }
}

/// Whether a text can be the name of a resource class.
fn is_class(name: &str) -> bool {
    let is_right = |byte: u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_');
    (1..=CLASS_CHARACTERS_MAX).contains(&name.len()) && name.bytes().all(is_right)
}

fn owned(text: &str) -> Cow<'static, str> {
    Cow::Owned(text.to_owned())
}

/// A limit in Keystone.
struct Found<'a> {
    service: &'a str,
    region: Option<&'a str>,
    resource: &'a str,
    limit: Option<u64>,
}

impl<'a> Found<'a> {
    fn read(entry: Entry<'a>, limit: &str) -> anyhow::Result<Self> {
        Ok(Self {
            service: entry.text("service_id")?,
            region: entry.optional("region_id")?,
            resource: entry.text("resource_name")?,
            limit: entry.limit(limit)?,
        })
    }
}

/// Passes each entry of a list to `read`. An error names the entry.
fn each<'a, T>(
    list: &'a [Value],
    name: &str,
    mut read: impl FnMut(Entry<'a>) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<T>> {
    let all = list.iter().enumerate();
    all.map(|(at, entry)| {
        let place = || format!("entry {at} of Keystone's list {name:?}");
        read(Entry(entry)).with_context(place)
    })
    .collect()
}

/// An entry of a list, whose members are checked.
#[derive(Clone, Copy)]
struct Entry<'a>(&'a Value);

impl<'a> Entry<'a> {
    fn member(self, name: &str) -> anyhow::Result<&'a Value> {
        self.0
            .get(name)
            .with_context(|| format!("it has no {name:?}"))
    }

    fn text(self, name: &str) -> anyhow::Result<&'a str> {
        let text = self.member(name)?.as_str().filter(|text| !text.is_empty());
        text.with_context(|| format!("{name:?} is not a text, or is empty"))
    }

    /// A text or null.
    fn nullable(self, name: &str) -> anyhow::Result<Option<&'a str>> {
        if self.member(name)?.is_null() {
            return Ok(None);
        }
        self.text(name).map(Some)
    }

    /// A text or null. Some versions of Keystone do not have this member.
    fn optional(self, name: &str) -> anyhow::Result<Option<&'a str>> {
        if self.0.get(name).is_none() {
            return Ok(None);
        }
        self.nullable(name)
    }

    fn limit(self, name: &str) -> anyhow::Result<Option<u64>> {
        let limit = self.member(name)?.as_i64();
        let limit = limit.with_context(|| format!("{name:?} is not an integer"))?;
        if limit == UNLIMITED {
            return Ok(None);
        }
        let limit = u64::try_from(limit).ok();
        let limit = limit.with_context(|| format!("{name:?} is below {UNLIMITED}"))?;
        Ok(Some(limit))
    }
}
