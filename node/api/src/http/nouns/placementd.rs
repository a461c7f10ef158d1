//! `GET /placementd/v1`: this service's own routes, for any caller with a token.

use placement_wire::rules::{OwnRoute, OwnRoutes};

use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::ApiError;

/// `GET /placementd/v1`: the version of these routes, and the routes that a policy rule guards.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    context.refuse_as_of("send the request without it")?;
    let rules = context.services.routes.own_rules().into_iter();
    let routes = rules.map(|[method, path, rule]| OwnRoute {
        method: method.into(),
        path: path.into(),
        rule: rule.into(),
    });
    Ok(Answer::json(&OwnRoutes {
        routes: routes.collect(),
        version: 1,
    }))
}
