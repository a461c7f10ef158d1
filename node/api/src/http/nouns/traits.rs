//! `/traits`, `/traits/{name}` and `/resource_providers/{uuid}/traits`, from 1.6.

use std::collections::BTreeSet;

use placement_model::Command;
use placement_model::command::{
    DeleteProviderTraits, DeleteTrait, EnsureTrait, ReplaceProviderTraits,
};
use placement_model::types::{Generation, Given, Timestamp, TraitName};
use serde::Serialize;

use super::{ensured, given_generation, written};
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, Varies, WriteKind, not_found};
use crate::http::wire::json::Json;

#[derive(Serialize)]
struct TraitsBody<'a> {
    traits: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_provider_generation: Option<Generation>,
}

/// An answer with the modification time of its newest trait.
fn answer(
    context: &RequestContext,
    traits: &[(TraitName, Timestamp)],
    resource_provider_generation: Option<Generation>,
) -> Answer {
    let body = TraitsBody {
        traits: traits.iter().map(|(name, _)| name.as_str()).collect(),
        resource_provider_generation,
    };
    let modified = traits.iter().map(|(_, at)| *at).max();
    context.modified(Answer::json(&body), modified)
}

/// Parses the filter of names: `in:` with a list of exact names, or `startswith:` with a prefix,
/// which is compared without regard to case. With any other operator, all names match.
fn name_filter(text: &str) -> Result<impl Fn(&str) -> bool, ApiError> {
    let Some((operator, value)) = text.split_once(':') else {
        return Err(ApiError::bad_request(format!(
            "Badly formatted name parameter. Expected name query string parameter in form: \
             ?name=[in|startswith]:[name1,name2|prefix]. Got: \"{text}\""
        )));
    };
    let names: BTreeSet<&str> = value.split(',').collect();
    Ok(move |name: &str| {
        let start = name.get(..value.len());
        match operator {
            "in" => names.contains(name),
            "startswith" => start.is_some_and(|start| start.eq_ignore_ascii_case(value)),
            _ => true,
        }
    })
}

/// `GET /traits`: the names of the traits that match the query.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    let query = context.query()?;
    query.check(context.head.route, context.head.version)?;
    let filter = query.last("name").map(name_filter).transpose()?;
    let associated = query
        .last("associated")
        .map(|text| text.to_lowercase().parse::<bool>());
    let wrong = "The query parameter \"associated\" only accepts \"true\" or \"false\"";
    let associated = (associated.transpose()).map_err(|_| ApiError::bad_request(wrong))?;
    let view = context.view().await?;
    let mut traits = view.state.traits(associated);
    if let Some(admits) = filter {
        traits.retain(|(name, _)| admits(name.as_str()));
    }
    Ok(answer(context, &traits, None))
}

/// `GET /traits/{name}`: 204 if the trait exists.
pub(crate) async fn show(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let name = context.param(0);
    let at = name
        .parse()
        .ok()
        .and_then(|name| view.state.trait_(&name))
        .ok_or_else(|| not_found::traits(&[name]))?;
    Ok(context.modified(Answer::no_content(), Some(at)))
}

/// `PUT /traits/{name}`: ensures that a custom trait exists.
pub(crate) async fn ensure(context: &RequestContext) -> Result<Answer, ApiError> {
    let name = context.param(0).parse().ok();
    let is_custom = |name: &TraitName| name.is_custom() && name.as_str() != "CUSTOM_";
    let Some(name) = name.filter(is_custom) else {
        return Err(ApiError::bad_request(
            "The trait is invalid. A valid trait must be no longer than 255 characters, start \
             with the prefix \"CUSTOM_\" and use following characters: \"A\"-\"Z\", \"0\"-\"9\" \
             and \"_\"",
        ));
    };
    let location = format!("/traits/{name}");
    let command = Command::EnsureTrait(EnsureTrait { name });
    #[cfg(feature = "rehearsal")]
    let command = command.rehearsed();
    let (reply, _) = context.submit(command, WriteKind::ChangeTrait).await?;
    let (answer, at) = ensured(&reply, location);
    Ok(context.modified(answer, at))
}

/// `DELETE /traits/{name}`: deletes an unused custom trait.
pub(crate) async fn delete(context: &RequestContext) -> Result<Answer, ApiError> {
    let name = context.param(0);
    let name = name.parse().map_err(|_| not_found::traits(&[name]))?;
    let command = Command::DeleteTrait(DeleteTrait { name });
    context.carry_out(command, WriteKind::ChangeTrait).await
}

/// `GET /resource_providers/{uuid}/traits`: the traits of a provider.
pub(crate) async fn for_provider(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let (generation, traits) =
        context.find_provider(Varies::Yes, |uuid| view.state.provider_traits(uuid))?;
    Ok(answer(context, &traits, Some(generation)))
}

/// `PUT /resource_providers/{uuid}/traits`: replaces the traits of a provider.
pub(crate) async fn replace(context: &RequestContext) -> Result<Answer, ApiError> {
    let body = context.body().await?;
    let provider = context.provider_or_404()?;
    let generation = given_generation(&body).unwrap_or_default();
    let given = body.get("traits").map(Json::items).unwrap_or_default();
    context.admit("traits", given.len(), |limits| limits.traits)?;
    let given = given.iter().filter_map(Json::text);
    let traits: BTreeSet<Given<TraitName>> = given.map(Given::from).collect();
    let command = Command::ReplaceProviderTraits(ReplaceProviderTraits {
        provider,
        generation,
        traits: traits.clone(),
    });
    let (reply, view) = context.submit(command, WriteKind::ChangeProvider).await?;
    let (generation, _) = written(&reply)?;
    let known = |name: &TraitName| {
        let at = view.state.trait_(name).unwrap_or_default();
        (name.clone(), at)
    };
    let traits: Vec<_> = (traits.iter().filter_map(Given::valid).map(known)).collect();
    Ok(answer(context, &traits, Some(generation)))
}

/// `DELETE /resource_providers/{uuid}/traits`: removes all traits from a provider.
pub(crate) async fn delete_all(context: &RequestContext) -> Result<Answer, ApiError> {
    let provider = context.provider_or_404()?;
    let command = Command::DeleteProviderTraits(DeleteProviderTraits { provider });
    context.carry_out(command, WriteKind::ChangeProvider).await
}
