//! `/placementd/v1/holds/{consumer_uuid}`: the end of a hold.

use placement_model::Command;
use placement_model::command::{NewHold, RenewHold};
use placement_model::types::{ConsumerUuid, HoldTerm};

use super::invalid_json;
use crate::http::edge::answer::Answer;
use crate::http::edge::as_of::parse_time;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, WriteKind};
use crate::http::wire::json::Json;

/// Maximum number of consumers that a hold is kept for.
const KEPT_FOR_MAX: usize = 100;

/// `PUT /placementd/v1/holds/{consumer_uuid}`: changes when the hold of a consumer ends.
///
/// # Errors
/// 404 if the consumer has no hold, 409 if a hold would lose its due time.
pub(crate) async fn renew(context: &RequestContext) -> Result<Answer, ApiError> {
    let body = context.body().await?;
    let command = Command::RenewHold(RenewHold {
        consumer: ConsumerUuid::from(context.param(0)),
        term: term(&body, "")?,
    });
    context.carry_out(command, WriteKind::RenewHold).await
}

/// The hold that a claim makes. `is_claimant` tells whether the claim has a consumer.
///
/// # Errors
/// 400 if it exceeds a limit or contradicts itself.
pub(super) fn new(asked: &Json, is_claimant: impl Fn(&str) -> bool) -> Result<NewHold, ApiError> {
    let names: Vec<_> = asked
        .member("for")
        .items()
        .iter()
        .filter_map(Json::text)
        .collect();
    if names.len() > KEPT_FOR_MAX {
        return Err(ApiError::over_limit("consumers in 'for'", KEPT_FOR_MAX));
    }
    if let Some(name) = names.iter().find(|name| is_claimant(name)) {
        return Err(invalid_json(format!(
            "a hold cannot be kept for its own consumer {name}; give the hold a UUID of its own, \
             at /hold/for"
        )));
    }
    Ok(NewHold {
        kept_for: names.into_iter().map(ConsumerUuid::from).collect(),
        term: term(asked, "/hold")?,
    })
}

/// The requested end of a hold; `at` is its place in the body.
fn term(asked: &Json, at: &str) -> Result<HoldTerm, ApiError> {
    let lease = asked.member("lease_s").integer();
    match (lease, asked.member("due").text()) {
        (None, None) => Ok(HoldTerm::Open),
        (Some(seconds), None) => Ok(HoldTerm::Lease {
            seconds: u32::try_from(seconds).map_err(invalid_json)?,
        }),
        (None, Some(due)) => {
            let due = parse_time(due).filter(|due| due.is_shown());
            let right = "give a time such as \"2026-12-24T06:00:00Z\"";
            due.map(HoldTerm::Due)
                .ok_or_else(|| invalid_json(format!("{right}, at {at}/due")))
        }
        (Some(_), Some(_)) => Err(invalid_json(format!(
            "give either 'lease_s' or 'due', at {at}/lease_s"
        ))),
    }
}
