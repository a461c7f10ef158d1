//! `/allocations`, `/allocations/{consumer_uuid}` and `/resource_providers/{uuid}/allocations`.

mod repeated;

use std::collections::BTreeMap;

use bytes::Bytes;
use indexmap::IndexMap;
use placement_model::command::{
    ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, DeleteAllocations,
    ProviderAmounts, ReplaceAllocations,
};
use placement_model::types::{
    ConsumerTypeName, ConsumerUuid, Generation, Given, ProjectId, ProviderUuid, ResourceClassName,
    Timestamp, UserId,
};
use placement_model::{Command, Outcome, Refusal};
use serde::Serialize;

use super::{invalid_json, listed};
use crate::http::edge::answer::Answer;
use crate::http::edge::claims::ClaimOutcome;
use crate::http::edge::request_context::{RequestContext, reply_to};
use crate::http::edge::searches::Searched;
use crate::http::errors::{ApiError, WriteKind, not_found};
use crate::http::wire::chunks::{Chunks, put};
use crate::http::wire::json::Json;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::spelling;
use crate::http::wire::values::Members;
use placement_base::backend::SharedState;
use placement_base::coverage::RarePath;

/// Project and user of allocations that are written below 1.8, where requests name neither.
const UNKNOWN_OWNER: &str = "00000000-0000-0000-0000-000000000000";

/// Amounts that one consumer holds on one provider.
#[derive(Serialize)]
struct HoldingBody<R: Serialize> {
    resources: R,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<Generation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumer_generation: Option<Generation>,
}

/// The amounts per class, as a JSON object.
fn amounts(resources: &[(ResourceClassName, u64)]) -> impl Serialize {
    let amounts = resources.iter();
    Members(amounts.map(|(class, amount)| (class.as_str(), *amount)))
}

#[derive(Serialize)]
struct ConsumerBody<'a, T: Serialize> {
    allocations: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<&'a ProjectId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<&'a UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumer_generation: Option<Generation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumer_type: Option<&'a str>,
}

/// `GET /allocations/{consumer_uuid}`. For an unknown consumer, the answer has no allocations
/// instead of being a 404.
pub(crate) async fn for_consumer(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let consumer = view.state.consumer(&ConsumerUuid::from(context.param(0)));
    let consumer = consumer.filter(|consumer| !consumer.allocations.is_empty());
    let consumer = consumer.as_ref();
    let since = |minor| consumer.filter(|_| context.head.version.from(minor));
    let holdings = consumer
        .iter()
        .flat_map(|consumer| &consumer.allocations)
        .map(|holding| {
            let body = HoldingBody {
                resources: amounts(&holding.resources),
                generation: Some(holding.generation),
                consumer_generation: None,
            };
            (holding.provider, body)
        });
    let body = ConsumerBody {
        allocations: Members(holdings),
        project_id: since(12).map(|consumer| &consumer.project),
        user_id: since(12).map(|consumer| &consumer.user),
        consumer_generation: since(28).map(|consumer| consumer.generation),
        consumer_type: since(38).map(|consumer| {
            let known = consumer.consumer_type.as_ref();
            known.map_or("unknown", ConsumerTypeName::as_str)
        }),
    };
    let modified = consumer.map(|consumer| consumer.modified);
    Ok(context.modified(Answer::json(&body), modified))
}

/// `GET /resource_providers/{uuid}/allocations`: the allocations of a provider by consumer.
pub(crate) async fn for_provider(context: &RequestContext) -> Result<Answer, ApiError> {
    let view = context.view().await?;
    let provider = context
        .provider()
        .filter(|uuid| view.state.place(uuid).is_some());
    let of = provider.ok_or_else(|| not_found::provider_with_allocations(context.param(0)))?;
    let version = context.head.version;
    let write = move |consumers_max| Ok(provider_body(&view.state, of, version, consumers_max));
    let (body, modified) = listed(context, write).await?;
    Ok(context.modified(Answer::chunks(body), modified))
}

/// All allocations of a provider, and the time of the latest change; `None` if there are more than
/// `consumers_max` consumers.
fn provider_body(
    state: &SharedState,
    provider: ProviderUuid,
    version: Microversion,
    consumers_max: usize,
) -> Option<(Vec<Bytes>, Option<Timestamp>)> {
    let (generation, holdings) = state.provider_holdings(&provider)?;
    let mut holdings = holdings.peekable();
    let mut modified = None;
    let mut chunks = Chunks::new();
    chunks.item().extend_from_slice(b"{\"allocations\":{");
    chunks.put_each(holdings.by_ref().take(consumers_max), |json, holding| {
        modified = modified.max(Some(holding.modified));
        put(json, &holding.consumer);
        json.push(b':');
        let body = HoldingBody {
            resources: amounts(&holding.resources),
            generation: None,
            consumer_generation: version.from(28).then_some(holding.consumer_generation),
        };
        put(json, &body);
    });
    if holdings.peek().is_some() {
        return None;
    }
    let json = chunks.item();
    json.extend_from_slice(b"},\"resource_provider_generation\":");
    put(json, &generation);
    json.push(b'}');
    Some((chunks.finish(), modified))
}

/// `PUT /allocations/{consumer_uuid}`: replaces the allocations of one consumer.
pub(crate) async fn replace(context: &RequestContext) -> Result<Answer, ApiError> {
    let given = context.param(0);
    let Some(uuid) = spelling::uuid(given) else {
        return Err(ApiError::bad_request(format!(
            "Malformed consumer_uuid: {given}. Give a UUID."
        )));
    };
    let body = context.body().await?;
    let spelled = uuid.as_hyphenated().to_string();
    let parse = || {
        let consumers = vec![parse_consumer(&spelled, &body, context.head.version)?];
        admit(context, &consumers)?;
        Ok(ReplaceAllocations { consumers })
    };
    carry_out_once(context, parse, WriteKind::Allocate { consumer: &spelled }).await
}

/// `POST /allocations`, from 1.13: replaces the allocations of several consumers in one step.
pub(crate) async fn replace_many(context: &RequestContext) -> Result<Answer, ApiError> {
    let body = context.body().await?;
    let parse = || {
        let consumers = parse_consumers(context, &body)?;
        Ok(ReplaceAllocations { consumers })
    };
    carry_out_once(context, parse, WriteKind::AllocateMany).await
}

/// Submits the parsed request and answers 204, also if an earlier attempt of the request is
/// committed: a client repeats a request whose answer it did not receive. If a limit refuses the
/// request, this is noted for the list of searches, once for each request id.
async fn carry_out_once(
    context: &RequestContext,
    parse: impl Fn() -> Result<ReplaceAllocations, ApiError>,
    write: WriteKind<'_>,
) -> Result<Answer, ApiError> {
    let written = context.write(Command::ReplaceAllocations(parse()?)).await?;
    if let Outcome::Refused(Refusal::ConsumerGenerationConflict { .. }) = &written.outcome
        && Box::pin(repeated::is_done(context, &written, parse()?)).await
    {
        RarePath::ClaimRepeated.ran();
        context.note_unchanged();
        return Ok(Answer::no_content());
    }
    let is_over_limit = matches!(written.outcome, Outcome::Refused(Refusal::OverLimit(_)));
    let replied = reply_to(written, write);
    if is_over_limit && !context.notes.lock().is_refused_again {
        let refusal = replied.as_ref().err();
        context.note_claim(Searched::sent(1), ClaimOutcome::OverLimit, refusal);
    }
    replied?;
    Ok(Answer::no_content())
}

/// `DELETE /allocations/{consumer_uuid}`: 404 if the consumer has no allocations.
pub(crate) async fn delete(context: &RequestContext) -> Result<Answer, ApiError> {
    let consumer = ConsumerUuid::from(context.param(0));
    let command = Command::DeleteAllocations(DeleteAllocations { consumer });
    context.carry_out(command, WriteKind::Deallocate).await
}

/// Parses several consumers in the order of the body, as in `POST /allocations` and the reshaper.
pub(crate) fn parse_consumers(
    context: &RequestContext,
    body: &Json,
) -> Result<Vec<ConsumerAllocations>, ApiError> {
    let consumers: Vec<_> = body
        .members()
        .map(|(consumer, body)| parse_consumer(consumer, body, context.head.version))
        .collect::<Result<_, _>>()?;
    admit(context, &consumers)?;
    Ok(consumers)
}

fn admit(context: &RequestContext, consumers: &[ConsumerAllocations]) -> Result<(), ApiError> {
    context.admit("consumers", consumers.len(), |limits| limits.consumers)?;
    let amounts = consumers.iter().flat_map(|consumer| &consumer.allocations);
    let allocations = amounts.map(|amounts| amounts.resources.len()).sum();
    context.admit("allocations", allocations, |limits| limits.allocations)
}

/// Parses the body of one consumer, which matches the schema of its version.
fn parse_consumer(
    consumer: &str,
    body: &Json,
    version: Microversion,
) -> Result<ConsumerAllocations, ApiError> {
    let text = |key: &str| body.member(key).text();
    let generation = match body.get("consumer_generation") {
        None => ConsumerGeneration::Unchecked,
        Some(value) => value.integer().map_or(ConsumerGeneration::New, |value| {
            ConsumerGeneration::Expect(Generation(value))
        }),
    };
    let consumer_type = match text("consumer_type").filter(|_| version.from(38)) {
        None => ConsumerTypeUpdate::Keep,
        Some(name) => ConsumerTypeUpdate::Set(name.parse().map_err(invalid_json)?),
    };
    let allocations =
        providers_in(body.member("allocations"))
            .into_iter()
            .map(|(provider, item)| ProviderAmounts {
                provider: Given::from(provider),
                resources: parse_amounts(item.member("resources")),
            });
    Ok(ConsumerAllocations {
        consumer: ConsumerUuid::from(consumer),
        allocations: allocations.collect(),
        project: ProjectId::from(text("project_id").unwrap_or(UNKNOWN_OWNER)),
        user: UserId::from(text("user_id").unwrap_or(UNKNOWN_OWNER)),
        generation,
        consumer_type,
    })
}

/// The providers of a list below 1.12, or of an object from then on. If a list names a provider
/// twice, the last entry wins.
fn providers_in(allocations: &Json) -> IndexMap<&str, &Json> {
    let listed = allocations.items().iter().map(|item| {
        let provider = item.member("resource_provider").member("uuid");
        (provider.text().unwrap_or_default(), item)
    });
    listed.chain(allocations.members()).collect()
}

pub(super) fn parse_amounts(resources: &Json) -> BTreeMap<Given<ResourceClassName>, u64> {
    let amounts = resources.members().map(|(class, amount)| {
        let amount = u64::try_from(amount.integer().unwrap_or_default());
        (Given::from(class), amount.unwrap_or_default())
    });
    amounts.collect()
}
