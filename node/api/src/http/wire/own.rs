//! Values of the model as this service's own routes write them.

use std::borrow::Cow;

use placement_base::backend::Position;
use placement_model::query::NamedProvider;
use placement_model::query::limits::LimitedProject;
use placement_model::state::change::LimitsRow;
use placement_model::types::{
    Capacity, Hold, HoldEnd, LimitMode, LimitedResource, ProjectId, ResourceLimits, Timestamp,
};
use placement_wire::{explain, holds, limits, trees};

/// An integer if it fits, else a float.
pub(crate) fn capacity(capacity: Capacity) -> placement_wire::Capacity {
    match capacity.small() {
        Some(units) => placement_wire::Capacity::Units(units),
        None => placement_wire::Capacity::Large(capacity.as_f64()),
    }
}

/// The position of the state on which an answer is based.
pub(crate) fn position(of: &Position) -> explain::Position<'static> {
    explain::Position {
        index: of.index.map(|index| index.to_string().into()),
        node: Some(of.node),
    }
}

/// A provider as operators refer to it.
pub(crate) fn named(provider: &NamedProvider) -> trees::NamedProvider<'_> {
    trees::NamedProvider {
        uuid: provider.uuid.to_string().into(),
        name: provider.name.as_str().into(),
    }
}

/// A hold as clients see it. Its times are exact, so that each renewal is a change.
pub(crate) fn hold(hold: &Hold) -> holds::Hold {
    let (lease_until, due) = match hold.end {
        HoldEnd::Lease(until) => (Some(until), None),
        HoldEnd::Due(due) => (None, Some(due)),
        HoldEnd::Open => (None, None),
    };
    let text = |time: Timestamp| time.rfc3339();
    holds::Hold {
        kept_for: hold.kept_for.iter().map(ToString::to_string).collect(),
        lease_until: lease_until.and_then(text),
        due: due.and_then(text),
    }
}

/// The limits of all projects as clients see them; the default before limits were ever put.
pub(crate) fn limits(row: Option<&LimitsRow>) -> limits::Limits<'_> {
    let Some(row) = row else {
        return limits::Limits::default();
    };
    let of = &row.limits;
    let types = of.types.iter().flatten();
    let types = types.map(|name| Some(name.as_str().into()));
    // Consumers without a type are the last of the list, as in the default.
    let without_type = of.types.iter().any(Option::is_none).then_some(None);
    let projects = of.projects.iter().map(|(project, of)| {
        let shown = limits::ProjectLimits {
            parent: of.parent.as_ref().map(text),
            limits: resource_limits(&of.limits),
        };
        (text(project), shown)
    });
    limits::Limits {
        generation: row.generation.0,
        mode: match of.mode {
            LimitMode::Report => limits::LimitMode::Report,
            LimitMode::Enforce => limits::LimitMode::Enforce,
        },
        types: types.chain(without_type).collect(),
        defaults: resource_limits(&of.defaults),
        projects: projects.collect(),
        updated_at: row.updated_at.rfc3339_seconds().map(Into::into),
    }
}

/// The usage of a project and its limits.
pub(crate) fn limited(project: &LimitedProject) -> limits::LimitedProject<'_> {
    let resources = project.resources.iter().map(|of| {
        let usage = limits::LimitUsage {
            used: of.used,
            limit: of.limit,
        };
        (resource(&of.resource), usage)
    });
    limits::LimitedProject {
        project_id: text(&project.project),
        parent: project.parent.as_ref().map(text),
        resources: resources.collect(),
    }
}

fn resource_limits(of: &ResourceLimits) -> limits::ResourceLimits<'_> {
    let limits = of.iter();
    let limits = limits.map(|(limited, limit)| (resource(limited), *limit));
    limits.collect()
}

fn resource(limited: &LimitedResource) -> Cow<'_, str> {
    match limited {
        LimitedResource::Consumers => limits::CONSUMERS.into(),
        LimitedResource::Class(name) => name.as_str().into(),
    }
}

fn text(project: &ProjectId) -> Cow<'_, str> {
    project.as_str().into()
}
