//! `/resource_providers` and `/resource_providers/{uuid}`.

use bytes::Bytes;
use http::StatusCode;
use placement_model::command::{CreateProvider, DeleteProvider, ParentUpdate, UpdateProvider};
use placement_model::outcome::Provider;
use placement_model::query::resource_providers::ProviderFilter;
use placement_model::types::{Generation, Given, ProviderName, ProviderUuid};
use placement_model::{Command, Reply};
use serde::Serialize;

use super::{Link, listed, name_in, unknown_name};
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, Varies, WriteKind, not_found, provider_without_name};
use crate::http::wire::chunks::{Chunks, put};
use crate::http::wire::microversion::Microversion;
use crate::http::wire::query::{Query, parse_member_of, parse_required, parse_resources};
use crate::http::wire::spelling;

/// Text before the names of missing traits.
const TRAITS: &str = "Invalid trait(s) in \"required\" parameter: ";

/// The JSON form of a provider.
#[derive(Serialize)]
struct ProviderBody<'a> {
    uuid: ProviderUuid,
    name: &'a str,
    generation: Generation,
    links: Vec<Link>,
    /// Present from 1.14.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_provider_uuid: Option<Option<ProviderUuid>>,
    /// Present from 1.14.
    #[serde(skip_serializing_if = "Option::is_none")]
    root_provider_uuid: Option<ProviderUuid>,
}

impl<'a> ProviderBody<'a> {
    fn for_request(context: &RequestContext, provider: &'a Provider) -> Self {
        Self::new(&context.head.base_path, context.head.version, provider)
    }

    fn new(base_path: &str, version: Microversion, provider: &'a Provider) -> Self {
        let path = format!("{base_path}/resource_providers/{}", provider.uuid);
        let links = [
            (0, "self", ""),
            (0, "inventories", "/inventories"),
            (0, "usages", "/usages"),
            (1, "aggregates", "/aggregates"),
            (6, "traits", "/traits"),
            (11, "allocations", "/allocations"),
        ];
        let known = links.into_iter().filter(|(since, ..)| version.from(*since));
        let links = known.map(|(_, rel, below)| Link {
            rel,
            href: format!("{path}{below}"),
        });
        let nested = version.from(14);
        Self {
            uuid: provider.uuid,
            name: provider.name.as_str(),
            generation: provider.generation,
            links: links.collect(),
            parent_provider_uuid: nested.then_some(provider.parent),
            root_provider_uuid: nested.then_some(provider.root),
        }
    }
}

/// `GET /resource_providers`: the providers that match the query.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    let query = context.query()?;
    query.check(context.head.route, context.head.version)?;
    let filter = parse_filter(query, context.head.version)?;
    let view = context.view().await?;
    let (base_path, version) = (context.head.base_path.clone(), context.head.version);
    let find = move |looks_max| {
        let found = view
            .state
            .providers(&filter, looks_max)
            .map_err(|error| unknown_name(&error, TRAITS))?;
        Ok::<_, ApiError>(found.map(|found| (list_body(&base_path, version, &found), found)))
    };
    let (body, found) = listed(context, find).await?;
    let modified = found.iter().map(|provider| provider.modified).max();
    Ok(context.modified(Answer::chunks(body), modified))
}

fn list_body(base_path: &str, version: Microversion, providers: &[Provider]) -> Vec<Bytes> {
    let mut chunks = Chunks::new();
    let opening = b"{\"resource_providers\":[";
    chunks.item().extend_from_slice(opening);
    chunks.put_each(providers, |json, provider| {
        put(json, &ProviderBody::new(base_path, version, provider));
    });
    chunks.item().extend_from_slice(b"]}");
    chunks.finish()
}

fn parse_filter(query: &Query, version: Microversion) -> Result<ProviderFilter, ApiError> {
    let all = |key| query.all(key).collect::<Vec<_>>();
    let member_of = parse_member_of(&all("member_of"), "", version)?;
    let required = parse_required(&all("required"), version)?;
    let provider = |key: &str| query.last(key).map(Given::from);
    let name = query.last("name");
    let resources = query.last("resources").map(parse_resources);
    Ok(ProviderFilter {
        name: name.filter(|name| !name.is_empty()).map(str::to_owned),
        uuid: provider("uuid"),
        in_tree: provider("in_tree"),
        member_of: member_of.any_of,
        not_member_of: member_of.forbidden,
        required: required.any_of,
        forbidden: required.forbidden,
        resources: resources.transpose()?.unwrap_or_default(),
    })
}

/// `GET /resource_providers/{uuid}`: one provider with its links.
pub(crate) async fn show(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let provider = context.find_provider(Varies::No, |uuid| view.state.provider(uuid))?;
    let answer = Answer::json(&ProviderBody::for_request(context, &provider));
    Ok(context.modified(answer, Some(provider.modified)))
}

/// `POST /resource_providers`: creates a provider; the body shows it from 1.20.
pub(crate) async fn create(context: &RequestContext) -> Result<Answer, ApiError> {
    let body = context.body().await?;
    // An empty UUID is treated as a missing one.
    let given = body.member("uuid").text().and_then(spelling::uuid);
    let uuid = ProviderUuid(given.unwrap_or_else(|| context.api().ids.uuid()));
    let name: ProviderName = name_in(&body)?;
    let write = WriteKind::CreateProvider {
        name: name.as_str(),
        uuid,
    };
    if name.as_str().is_empty() {
        return Err(provider_without_name(uuid));
    }
    let command = Command::CreateProvider(CreateProvider {
        uuid,
        name: name.clone(),
        parent: body.member("parent_provider_uuid").text().map(Given::from),
    });
    let (reply, _) = context.submit(command, write).await?;
    let location = format!("/resource_providers/{uuid}");
    match reply {
        Reply::Provider(provider) if context.head.version.from(20) => {
            let answer = Answer::json(&ProviderBody::for_request(context, &provider));
            Ok(context.modified(answer.location(location), Some(provider.modified)))
        }
        _ => Ok(Answer::created().location(location)),
    }
}

/// `PUT /resource_providers/{uuid}`. As in the reference, the answer shows the provider after this
/// change, but the time of the previous change.
pub(crate) async fn update(context: &RequestContext) -> Result<Answer, ApiError> {
    let uuid = context.provider_or_404()?;
    let body = context.body_below(uuid).await?;
    let parent = match body.get("parent_provider_uuid") {
        None => ParentUpdate::Keep,
        Some(value) => value.text().map_or(ParentUpdate::Clear, |text| {
            ParentUpdate::Set(Given::from(text))
        }),
    };
    let write = WriteKind::UpdateProvider {
        uuid,
        clears_parent: parent == ParentUpdate::Clear,
    };
    let command = Command::UpdateProvider(UpdateProvider {
        uuid,
        name: name_in(&body)?,
        parent,
        may_reparent: context.head.version.from(37),
    });
    let updated = if context.head.version.from(15) {
        context.view_to_write().await?.state.provider_updated(&uuid)
    } else {
        None
    };
    let (reply, _) = context.submit(command, write).await?;
    let Reply::Provider(provider) = reply else {
        return Ok(Answer::no_content().status(StatusCode::OK));
    };
    let answer = Answer::json(&ProviderBody::for_request(context, &provider));
    Ok(context.modified_if_ever(answer, updated))
}

/// `DELETE /resource_providers/{uuid}`: deletes a provider without children and allocations.
pub(crate) async fn delete(context: &RequestContext) -> Result<Answer, ApiError> {
    let uuid =
        (context.provider()).ok_or_else(|| not_found::provider_to_delete(context.param(0)))?;
    let command = Command::DeleteProvider(DeleteProvider { uuid });
    context.carry_out(command, WriteKind::DeleteProvider).await
}
