//! `GET /placementd/v1/explain`: explains the candidates of a request.

use placement_model::query::candidates::CandidateRequest;

use crate::http::edge::answer::Answer;
use crate::http::edge::explanations::{AnsweredRequest, DEADLINE, WAIT};
use crate::http::edge::request_context::RequestContext;
use crate::http::edge::settings::RequestLimits;
use crate::http::errors::ApiError;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::query::{Query, parse_candidates};

/// The first microversion with candidates.
const CANDIDATES_SINCE: u8 = 10;

/// The microversion in which a query is parsed: the requested one if it has candidates, otherwise
/// the newest.
pub(super) fn version(context: &RequestContext) -> Microversion {
    if context.head.version.from(CANDIDATES_SINCE) {
        context.head.version
    } else {
        Microversion::MAX
    }
}

/// Parses a query inside a body, with the limits of a URL's query.
pub(super) fn parse_within_body(
    context: &RequestContext,
    query: &str,
    version: Microversion,
) -> Result<CandidateRequest, ApiError> {
    let limits = &context.api().settings.limits;
    if query.len() > limits.uri_bytes {
        return Err(ApiError::over_limit("bytes in a query", limits.uri_bytes));
    }
    let query = Query::parse_at_most(limits.query_parameters, query)?;
    parse(context, &query, version)
}

/// # Errors
/// 400 if the query is invalid or has too many groups.
pub(super) fn parse(
    context: &RequestContext,
    query: &Query,
    version: Microversion,
) -> Result<CandidateRequest, ApiError> {
    parse_within(&context.api().settings.limits, query, version)
}

/// # Errors
/// 400 if the query is invalid or has too many groups.
pub(super) fn parse_within(
    limits: &RequestLimits,
    query: &Query,
    version: Microversion,
) -> Result<CandidateRequest, ApiError> {
    let request = parse_candidates(query, version)?;
    if request.groups.len() > limits.request_groups {
        let most = limits.request_groups;
        return Err(ApiError::over_limit("request groups", most));
    }
    Ok(request)
}

/// `GET /placementd/v1/explain`, with the query of `/allocation_candidates`.
pub(crate) async fn show(context: &RequestContext) -> Result<Answer, ApiError> {
    let version = version(context);
    let request = parse(context, context.query()?, version)?;
    let explanations = &context.services.server.admission.explanations;
    // The permit is acquired before the state is read: writes must copy the data of a state that a
    // request holds.
    let turn = explanations.turn(context.head.caller, WAIT).await?;
    let asked = AnsweredRequest {
        view: context.view().await?,
        request,
        version,
    };
    let patience = context.patience(context.api().clock.monotonic(), DEADLINE);
    let explained = context.compute_idly(move || {
        let _turn = turn;
        asked.explain(&patience)
    });
    Ok(Answer::json(&explained.await?.shown()))
}
