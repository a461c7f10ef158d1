//! `/placementd/v1/limits` and `/placementd/v1/limits/usage`: limits of the usage of projects.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::command::ReplaceLimits;
use placement_model::query::limits::{LimitFilter, LimitPage};
use placement_model::types::{
    ConsumerTypeName, Generation, LimitMode, LimitedResource, Limits, ProjectId, ProjectLimits,
    ResourceLimits,
};
use placement_model::{Command, Reply};
use placement_wire::limits as wire;

use super::{CONTENT_ROWS_MAX, LIMIT_MAX, at_most, consumer_type, invalid_json, parse_limit};
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, WriteKind, to_json};
use crate::http::wire::json::Json;
use crate::http::wire::own;

/// Maximum number of counted consumer types.
const TYPES_MAX: usize = 16;
/// The change log does not contain limits, so that those of an earlier state are unknown.
const NOT_LOGGED: &str = "earlier limits are not available";

/// `GET /placementd/v1/limits`: the limits of all projects.
pub(crate) async fn show(context: &RequestContext) -> Result<Answer, ApiError> {
    context.refuse_as_of(NOT_LOGGED)?;
    let view = context.view().await?;
    let made = context.listed(move || Ok(to_json(&own::limits(view.state.limits()))));
    Ok(context.modified_now(Answer::chunks(vec![made.await?])))
}

/// `PUT /placementd/v1/limits`: replaces the limits of all projects.
///
/// # Errors
/// 400 if the limits contradict themselves, 409 if they have another generation.
pub(crate) async fn replace(context: &RequestContext) -> Result<Answer, ApiError> {
    let body = context.body().await?;
    let generation = body.member("generation").integer().unwrap_or_default();
    let command = Command::ReplaceLimits(ReplaceLimits {
        generation: Generation(generation),
        limits: parse(&body)?,
    });
    let (reply, _) = context.submit(command, WriteKind::ReplaceLimits).await?;
    let Reply::LimitsWritten { generation } = reply else {
        return Err(ApiError::internal());
    };
    let Generation(generation) = generation;
    Ok(Answer::json(&wire::LimitsWritten { generation }))
}

/// `GET /placementd/v1/limits/usage`: a page of projects after `marker`.
pub(crate) async fn usage(context: &RequestContext) -> Result<Answer, ApiError> {
    context.refuse_as_of(NOT_LOGGED)?;
    let query = context.query()?;
    query.check_once(context.head.route, context.head.version)?;
    let limit = query.last("limit").map_or(Ok(LIMIT_MAX), parse_limit)?;
    let marker = query.last("marker").map(ProjectId::from);
    let filter = LimitFilter {
        project: query.last("project").map(ProjectId::from),
        over: query.last("over") == Some("true"),
    };
    let view = context.view().await?;
    let made = context.listed(move || {
        let page = view
            .state
            .limit_usages(&filter, marker.as_ref(), limit, CONTENT_ROWS_MAX);
        Ok(to_json(&shown(&page)))
    });
    Ok(context.modified_now(Answer::chunks(vec![made.await?])))
}

fn shown(page: &LimitPage) -> wire::LimitUsagePage<'_> {
    wire::LimitUsagePage {
        projects: page.projects.iter().map(own::limited).collect(),
        next: page.next.as_ref().map(|project| project.as_str().into()),
    }
}

/// Parses limits, which match their schema.
///
/// # Errors
/// 400 if there are too many types, a name is malformed, or a project cannot be a parent.
fn parse(body: &Json) -> Result<Limits, ApiError> {
    let types: BTreeSet<_> = match body.get("types").map(Json::items) {
        Some(types) => {
            at_most("types", types.len(), TYPES_MAX)?;
            types.iter().map(consumer_type).collect::<Result<_, _>>()?
        }
        None => types_default(),
    };
    let projects = body.member("projects").members().map(project);
    let projects = projects.collect::<Result<BTreeMap<_, _>, _>>()?;
    check_parents(&projects)?;
    Ok(Limits {
        mode: match body.member("mode").text() {
            Some("enforce") => LimitMode::Enforce,
            _ => LimitMode::Report,
        },
        types,
        defaults: resource_limits(body.member("defaults"))?,
        projects,
    })
}

/// The types that count by default: servers, also those that were written without a type.
fn types_default() -> BTreeSet<Option<ConsumerTypeName>> {
    let servers: ConsumerTypeName = "INSTANCE".parse().expect("INSTANCE is the name of a type");
    BTreeSet::from([Some(servers), None])
}

fn project((id, of): (&str, &Json)) -> Result<(ProjectId, ProjectLimits), ApiError> {
    let limits = ProjectLimits {
        parent: of.member("parent").text().map(ProjectId::from),
        limits: resource_limits(of.member("limits"))?,
    };
    Ok((ProjectId::from(id), limits))
}

fn resource_limits(limits: &Json) -> Result<ResourceLimits, ApiError> {
    let limits = limits.members().map(|(name, limit)| {
        let resource = LimitedResource::try_from(name.to_owned()).map_err(invalid_json)?;
        Ok((resource, limit.integer().map(i64::unsigned_abs)))
    });
    limits.collect()
}

/// # Errors
/// 400 if a parent is not among the projects, or has a parent itself.
fn check_parents(projects: &BTreeMap<ProjectId, ProjectLimits>) -> Result<(), ApiError> {
    for (id, limits) in projects {
        let Some(parent) = &limits.parent else {
            continue;
        };
        let problem = match projects.get(parent) {
            None => "is not among the projects",
            Some(of_parent) if of_parent.parent.is_some() => "has a parent itself",
            Some(_) => continue,
        };
        return Err(invalid_json(format!(
            "the parent {parent} of project {id} {problem}, at /projects"
        )));
    }
    Ok(())
}
