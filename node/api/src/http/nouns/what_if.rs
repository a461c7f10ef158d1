//! `POST /placementd/v1/what-if`: writes on a copy of the state, and questions to what becomes of it.

use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::body::Body;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use placement_model::query::capacity::{CapacityBy, CapacityReport};
use placement_model::query::what_if::Fit;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{CONTENT_ROWS_MAX, explain};
use crate::audit::Audit;
use crate::backend::View;
use crate::fork::Fork;
use crate::http::edge::answer::Answer;
use crate::http::edge::explanations::{Asked, Explained};
use crate::http::edge::request_context::RequestContext;
use crate::http::edge::service::rehearse;
use crate::http::edge::state::{Api, Server};
use crate::http::errors::ApiError;
use crate::http::nouns::allocation_candidates::wrong_name;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::query::{Query, parse_candidates};
use crate::world::Clock;

/// Most writes of one request.
const CHANGES_MAX: usize = 1_000;
/// Most questions of one request.
const QUESTIONS_MAX: usize = 16;
/// Most claims of one question.
const CLAIMS_MAX: u64 = 10_000;
/// How long one question may take.
const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhatIf {
    #[serde(default)]
    changes: Vec<Change>,
    #[serde(default)]
    ask: Vec<Question>,
}

/// A write of the API, as it would be sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    method: String,
    path: String,
    body: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Question {
    /// How often a request can be claimed.
    Fit {
        query: String,
        at_most: u64,
    },
    Explain {
        query: String,
    },
    Capacity {
        #[serde(default)]
        by: CapacityBy,
    },
}

#[derive(Serialize)]
struct Answered {
    changes: Vec<Changed>,
    answers: Vec<Found>,
}

/// What a write is answered.
#[derive(Serialize)]
struct Changed {
    status: u16,
    body: Option<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Found {
    Fit(Fit),
    Explain(Box<Explained>),
    Capacity(CapacityReport),
}

/// `POST /placementd/v1/what-if`.
pub(crate) async fn ask(context: &RequestContext) -> Result<Answer, ApiError> {
    let asked: WhatIf = serde_json::from_slice(&context.body)
        .map_err(|wrong| ApiError::bad_request(format!("JSON does not validate: {wrong}")))?;
    for (what, count, most) in [
        ("changes", asked.changes.len(), CHANGES_MAX),
        ("questions", asked.ask.len(), QUESTIONS_MAX),
    ] {
        if count > most {
            return Err(ApiError::over_limit(what, most));
        }
    }
    let version = explain::version(context);
    let turn = (context.server.admission.explanations)
        .turn(DEADLINE)
        .await?;
    let api = &context.server.api;
    let fork = Arc::new(Fork::of(context.view().await?, api.clock.clone()));
    let server = Arc::new(Server {
        api: Api {
            write: fork.clone(),
            read: fork.clone(),
            audit: Audit::off(),
            ..api.clone()
        },
        callers: context.server.callers.clone(),
        admission: context.server.admission.clone(),
        searches: Arc::default(),
    });
    let mut changes = Vec::new();
    for change in asked.changes {
        let request = request(context, change, version)?;
        changes.push(changed(rehearse(&server, context.routes, request).await).await?);
        // Others wait for this thread, too.
        tokio::task::yield_now().await;
    }
    // Dropped with the request's future, when its client is gone.
    let waits = Arc::new(());
    let questions = Questions {
        view: fork.now(),
        version,
        clock: api.clock.clone(),
        waiting: Arc::downgrade(&waits),
    };
    let answers = context.compute_idly(move || {
        let _turn = turn;
        let answers = asked.ask.into_iter();
        answers.map(|question| questions.answer(question)).collect()
    });
    let answers = answers.await?;
    Ok(Answer::json(&Answered { changes, answers }))
}

async fn changed(response: Response<Body>) -> Result<Changed, ApiError> {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await;
    let body = body.map_err(|_| ApiError::internal())?.to_bytes();
    // Errors may be pages for people.
    let body = serde_json::from_slice(&body).ok();
    Ok(Changed { status, body })
}

/// A write as a request to the API.
fn request(
    context: &RequestContext,
    change: Change,
    version: Microversion,
) -> Result<Request<Body>, ApiError> {
    let Change { method, path, body } = change;
    let is_write = [Method::PUT, Method::POST, Method::DELETE]
        .iter()
        .any(|one| one.as_str() == method);
    if !is_write || !path.starts_with('/') || path.starts_with("/placementd/") {
        return Err(ApiError::bad_request(format!(
            "{method} {path} is not a write of the API; give PUT, POST or DELETE, and a path such as \
             /resource_providers"
        )));
    }
    let prefix = &context.server.api.settings.public.prefix;
    let request = Request::builder()
        .method(method.as_str())
        .uri(format!("{prefix}{path}"))
        .header("accept", "application/json")
        .header("openstack-api-version", version.header());
    let request = match &body {
        Some(_) => request.header("content-type", "application/json"),
        None => request,
    };
    let body = body.map_or_else(String::new, |body| body.get().to_owned());
    let request = request.body(body.into());
    request.map_err(|wrong| ApiError::bad_request(format!("{method} {path}: {wrong}")))
}

/// What questions are answered from.
struct Questions {
    view: View,
    version: Microversion,
    clock: Arc<dyn Clock>,
    waiting: Weak<()>,
}

impl Questions {
    fn answer(&self, question: Question) -> Result<Found, ApiError> {
        Ok(match question {
            Question::Explain { query } => {
                let explained = self.asked(&query)?.explain(&self.clock, &self.waiting);
                let explained = explained.map_err(|error| ApiError::bad_request(error.to_string()));
                Found::Explain(Box::new(explained?))
            }
            Question::Capacity { by } => {
                let report = self.view.state.capacity(None, by, CONTENT_ROWS_MAX);
                Found::Capacity(
                    report.ok_or_else(|| ApiError::over_limit("rows", CONTENT_ROWS_MAX))?,
                )
            }
            Question::Fit { query, at_most } => {
                if at_most > CLAIMS_MAX {
                    return Err(ApiError::bad_request(format!(
                        "at_most is {at_most}; at most {CLAIMS_MAX} claims are tried"
                    )));
                }
                let request = self.asked(&query)?.request;
                let begun = self.clock.monotonic();
                let watch = |_steps| {
                    let late = self.clock.monotonic().saturating_sub(begun) > DEADLINE;
                    match late || self.waiting.strong_count() == 0 {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                };
                let fit = self.view.state.fit(&request, at_most, Box::new(watch));
                Found::Fit(fit.map_err(|error| wrong_name(&error))?)
            }
        })
    }

    fn asked(&self, query: &str) -> Result<Asked, ApiError> {
        let query = Query::parse_at_most(explain::PARAMETERS_MAX, query)?;
        Ok(Asked {
            view: self.view.clone(),
            request: parse_candidates(&query, self.version)?,
            version: self.version,
        })
    }
}
