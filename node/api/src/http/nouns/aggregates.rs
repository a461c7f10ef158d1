//! `/resource_providers/{uuid}/aggregates`, from 1.1.

use placement_model::Command;
use placement_model::command::ReplaceProviderAggregates;
use placement_model::types::{AggregateUuid, Generation};
use serde::Serialize;

use super::{given_generation, written};
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, Varies, WriteKind};
use crate::http::wire::json::Json;

#[derive(Serialize)]
struct AggregatesBody<'a> {
    aggregates: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_provider_generation: Option<Generation>,
}

fn answer<'a>(
    context: &RequestContext,
    aggregates: impl IntoIterator<Item = &'a AggregateUuid>,
    generation: Generation,
) -> Answer {
    let aggregates = aggregates.into_iter();
    let body = AggregatesBody {
        aggregates: aggregates.map(AggregateUuid::as_str).collect(),
        resource_provider_generation: context.head.version.from(19).then_some(generation),
    };
    context.modified_now(Answer::json(&body))
}

/// `GET …/aggregates`: the aggregates of a provider.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let (generation, aggregates) =
        context.find_provider(Varies::No, |uuid| view.state.provider_aggregates(uuid))?;
    Ok(answer(context, &aggregates, generation))
}

/// `PUT …/aggregates`. The answer echoes the list in the order given.
pub(crate) async fn replace(context: &RequestContext) -> Result<Answer, ApiError> {
    let provider = context.provider_or_404()?;
    let body = context.body_below(provider).await?;
    let list = body.get("aggregates").unwrap_or(&body).items();
    context.admit("aggregates", list.len(), |limits| limits.aggregates)?;
    let given: Vec<AggregateUuid> = list
        .iter()
        .filter_map(Json::text)
        .map(AggregateUuid::from)
        .collect();
    let command = Command::ReplaceProviderAggregates(ReplaceProviderAggregates {
        provider,
        generation: given_generation(&body),
        aggregates: given.iter().cloned().collect(),
    });
    let (reply, _) = context.submit(command, WriteKind::ChangeProvider).await?;
    let (generation, _) = written(&reply)?;
    Ok(answer(context, &given, generation))
}
