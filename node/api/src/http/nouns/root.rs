//! `GET /`: version discovery.

use serde_json::json;

use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::ApiError;
use crate::http::wire::microversion::Microversion;

/// `GET /`. The link is relative to the address that the client used, so it is empty. 503 on a node
/// that is not ready: many load balancers, such as kolla's, check only this route.
pub(crate) async fn show(context: &RequestContext) -> Result<Answer, ApiError> {
    context.refuse_as_of("send the request without it")?;
    let api = context.api();
    if let Some(reason) = api.readiness.why_not().await {
        return Err(ApiError::not_ready(&reason));
    }
    let version = json!({
        "id": format!("v{}", Microversion::MIN.text()),
        "max_version": Microversion::MAX.text(),
        "min_version": Microversion::MIN.text(),
        "status": "CURRENT",
        "links": [{"rel": "self", "href": ""}],
    });
    let body = json!({ "versions": [version] });
    Ok(context.modified_now(Answer::json(&body)))
}
