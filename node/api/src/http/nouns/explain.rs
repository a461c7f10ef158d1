//! `GET /placementd/v1/explain`: why a request for candidates has the answer that it has.

use placement_model::query::candidates::CandidateRequest;

use crate::http::edge::answer::Answer;
use crate::http::edge::explanations::{Asked, DEADLINE, WAIT};
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::ApiError;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::query::{Query, parse_candidates};

/// The first microversion with candidates.
const CANDIDATES_SINCE: u8 = 10;

/// The microversion by which a query is read: the newest, unless one is asked for that has
/// candidates.
pub(super) fn version(context: &RequestContext) -> Microversion {
    match context.version.from(CANDIDATES_SINCE) {
        true => context.version,
        false => Microversion::MAX,
    }
}

/// Reads a query that stands in a body; bounded as that of an URL is.
pub(super) fn parse_within_body(
    context: &RequestContext,
    query: &str,
    version: Microversion,
) -> Result<CandidateRequest, ApiError> {
    let limits = &context.server.api.settings.limits;
    if query.len() > limits.uri_bytes {
        return Err(ApiError::over_limit("bytes in a query", limits.uri_bytes));
    }
    let query = Query::parse_at_most(limits.query_parameters, query)?;
    parse(context, &query, version)
}

/// # Errors
/// 400.
pub(super) fn parse(
    context: &RequestContext,
    query: &Query,
    version: Microversion,
) -> Result<CandidateRequest, ApiError> {
    let request = parse_candidates(query, version)?;
    context.admit("request groups", request.groups.len(), |limits| {
        limits.request_groups
    })?;
    Ok(request)
}

/// `GET /placementd/v1/explain`, with the query of `/allocation_candidates`.
pub(crate) async fn show(context: &RequestContext) -> Result<Answer, ApiError> {
    let version = version(context);
    let request = parse(context, context.query()?, version)?;
    let explanations = &context.server.admission.explanations;
    // Before the state: one that is kept is copied by writes.
    let turn = explanations.turn(context.caller, WAIT).await?;
    let asked = Asked {
        view: context.view().await?,
        request,
        version,
    };
    let patience = context.patience(context.server.api.clock.monotonic(), DEADLINE);
    let explained = context.compute_idly(move || {
        let _turn = turn;
        asked.explain(&patience)
    });
    Ok(Answer::json(&explained.await?))
}
