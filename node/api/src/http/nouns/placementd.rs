//! `GET /placementd/v1`: this service's own routes, for any caller with a token.

use serde_json::{Value, json};

use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::ApiError;

/// `GET /placementd/v1`: the version of these routes, and the routes that a policy rule guards.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    context.refuse_as_of("send the request without it")?;
    let rules = context.routes.own_rules().into_iter();
    let routes =
        rules.map(|[method, path, rule]| json!({ "method": method, "path": path, "rule": rule }));
    let routes: Vec<Value> = routes.collect();
    Ok(Answer::json(&json!({ "version": 1, "routes": routes })))
}
