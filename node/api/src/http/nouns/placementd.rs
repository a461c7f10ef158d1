//! `GET /placementd/v1`: this service's own routes, for any caller with a token.

use serde_json::{Value, json};

use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::ApiError;

/// `GET /placementd/v1`: the version of these routes, and those that a policy rule guards.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    let guarded = context.routes.own().filter_map(|(path, operation)| {
        let rule = operation.policy?;
        Some(json!({ "method": operation.method, "path": path, "rule": rule }))
    });
    let routes: Vec<Value> = guarded.collect();
    Ok(Answer::json(&json!({ "version": 1, "routes": routes })))
}
