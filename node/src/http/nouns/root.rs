//! `GET /`: version discovery.

use serde::Serialize;

use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::ApiError;
use crate::http::wire::microversion::Microversion;

#[derive(Serialize)]
struct Body {
    versions: [Version; 1],
}

#[derive(Serialize)]
struct Version {
    id: String,
    max_version: String,
    min_version: String,
    status: &'static str,
    links: [Link; 1],
}

#[derive(Serialize)]
struct Link {
    rel: &'static str,
    href: &'static str,
}

/// `GET /`. The link is relative to the address that the client used, so it is empty. 503 on a node
/// that is not ready: many balancers, such as kolla's, ask nothing else.
pub(in crate::http) async fn show(context: &RequestContext) -> Result<Answer, ApiError> {
    let api = &context.server.api;
    if api.settings.root_reflects_readiness
        && let Some(reason) = api.readiness.why_not().await
    {
        return Err(ApiError::not_ready(&reason));
    }
    let version = Version {
        id: format!("v{}", Microversion::MIN),
        max_version: Microversion::MAX.to_string(),
        min_version: Microversion::MIN.to_string(),
        status: "CURRENT",
        links: [Link {
            rel: "self",
            href: "",
        }],
    };
    Ok(context.modified_now(Answer::json(&Body {
        versions: [version],
    })))
}
