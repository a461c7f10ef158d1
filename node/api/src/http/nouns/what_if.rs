//! `/placementd/v1/what-if`: writes to a copy of the state, and questions about the result.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use percent_encoding::percent_decode_str;
use placement_model::query::candidates::CandidateRequest;
use placement_model::query::capacity::{CapacityBy, CapacityReport};
use placement_model::query::preemption::{Preemptible, Preemption};
use placement_model::query::what_if::Fit;
use placement_model::types::ProjectId;
use placement_wire::what_if::{self as wire, Change, Question, WriteResponse};
use serde_json::value::RawValue;

use super::{CONTENT_ROWS_MAX, bad_value, capacity, consumers, explain, unknown_name};
use crate::fork::Fork;
use crate::http::edge::answer::Answer;
use crate::http::edge::explanations::{self, AnsweredRequest, Explained};
use crate::http::edge::patience::Patience;
use crate::http::edge::request_context::RequestContext;
use crate::http::edge::route::is_own;
use crate::http::edge::state::{Api, Server};
use crate::http::errors::ApiError;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::own;
use placement_audit::Audit;
use placement_base::backend::View;

/// Maximum size of a body, in bytes.
pub(crate) const BODY_MAX_BYTES: usize = 1024 * 1024;
/// Maximum number of writes per request.
const CHANGES_MAX: usize = 1_000;
/// Maximum number of questions per request.
const QUESTIONS_MAX: usize = 4;
/// Maximum number of claims per question.
pub(super) const CLAIMS_MAX: u64 = 10_000;
/// Maximum number of types and of projects per question.
const NAMES_MAX: usize = 100;
/// Time limit for a question about claims.
const DEADLINE: Duration = Duration::from_secs(10);
/// Time limit of `GET`: short, as people wait for the answer.
const FIT_DEADLINE: Duration = Duration::from_secs(1);
/// Time limit for waiting in the queue: longer than the question in front may take.
pub(super) const WAIT: Duration = Duration::from_secs(15);

/// The answer to a question.
enum WhatIfAnswer {
    Fit(Fit),
    Explain(Box<Explained>),
    Capacity(CapacityReport),
    Preempt(Preemption),
}

impl WhatIfAnswer {
    /// The answer as the response contains it.
    fn shown(&self) -> wire::WhatIfAnswer<'_> {
        match self {
            Self::Fit(found) => wire::WhatIfAnswer::Fit(fit_shown(found)),
            Self::Explain(explained) => wire::WhatIfAnswer::Explain(Box::new(explained.shown())),
            Self::Capacity(report) => wire::WhatIfAnswer::Capacity(capacity::shown(report)),
            Self::Preempt(found) => wire::WhatIfAnswer::Preempt(preemption_shown(found)),
        }
    }
}

fn fit_shown(fit: &Fit) -> wire::Fit {
    let Fit {
        count,
        exact,
        complete,
    } = *fit;
    wire::Fit {
        count,
        exact,
        complete,
    }
}

fn preemption_shown(found: &Preemption) -> wire::Preemption<'_> {
    let plan = found.plan.as_ref();
    let consumers = plan.map_or(&[][..], |plan| &plan.consumers);
    wire::Preemption {
        possible: plan.is_some(),
        provider: plan.and_then(|plan| plan.root.as_ref()).map(own::named),
        consumers: consumers.iter().map(consumers::consumer).collect(),
        exact: plan.map_or(found.complete, |plan| plan.exact),
        complete: found.complete,
    }
}

/// `POST /placementd/v1/what-if`: applies the changes to a copy and answers the questions.
pub(crate) async fn ask(context: &RequestContext) -> Result<Answer, ApiError> {
    let asked: wire::WhatIf<Box<RawValue>> = serde_json::from_slice(&context.body)
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
    let questions = asked
        .ask
        .into_iter()
        .map(|question| parse(question, context, version))
        .collect::<Result<Vec<_>, _>>()?;
    // The changes take one permit and each question another, so that requests of other users can
    // run in between.
    let what_ifs = &context.services.server.admission.what_ifs;
    let place = what_ifs.place(context.head.caller, WAIT).await?;
    let turn = place.turn(WAIT).await?;
    let api = context.api();
    let fork = Arc::new(Fork::new(context.view().await?, api.clock.clone()));
    let server = Arc::new(Server {
        api: Api {
            write: fork.clone(),
            read: fork.clone(),
            audit: Audit::off(),
            ..api.clone()
        },
        searches: Arc::default(),
        claims: Arc::default(),
        exceeded_limits: None,
        ..Server::clone(&context.services.server)
    });
    let routes = context.services.routes;
    let mut changes = Vec::new();
    for change in asked.changes {
        let request = request(context, change, version)?;
        let answer = routes.rehearse(server.clone(), request).await;
        changes.push(changed(answer).await?);
        // Other tasks need this thread too.
        tokio::task::yield_now().await;
    }
    let becomes = Arc::new(ChangedState {
        view: fork.now(),
        patience: context.patience(Duration::ZERO, DEADLINE),
    });
    drop(turn);
    let mut answers = Vec::new();
    for ask in questions {
        let (turn, becomes) = (place.turn(WAIT).await?, becomes.clone());
        let answer = context.compute_idly(move || {
            let _turn = turn;
            ask(&becomes)
        });
        answers.push(answer.await?);
    }
    Ok(Answer::json(&wire::Outcome {
        changes,
        answers: answers.iter().map(WhatIfAnswer::shown).collect(),
    }))
}

/// `GET /placementd/v1/what-if`, with the query of `/allocation_candidates`: how often the request
/// can be claimed now.
pub(crate) async fn fit(context: &RequestContext) -> Result<Answer, ApiError> {
    let request = explain::parse(context, context.query()?, explain::version(context))?;
    let what_ifs = &context.services.server.admission.what_ifs;
    let turn = what_ifs.turn(context.head.caller, WAIT).await?;
    let now = ChangedState {
        view: context.view().await?,
        patience: context.patience(Duration::ZERO, FIT_DEADLINE),
    };
    let fit = context.compute_idly(move || {
        let _turn = turn;
        now.fit(&request, CLAIMS_MAX, FIT_DEADLINE)
    });
    Ok(Answer::json(&fit_shown(&fit.await?)))
}

/// The state after the changes.
struct ChangedState {
    view: View,
    /// Deadline, renewed for each question.
    patience: Patience,
}

impl ChangedState {
    fn fit(
        &self,
        request: &CandidateRequest,
        at_most: u64,
        limit: Duration,
    ) -> Result<Fit, ApiError> {
        let patience = self.patience.renewed(limit);
        let watch = Box::new(|_steps| patience.check());
        let fit = self.view.state.fit(request, at_most, watch);
        fit.map_err(|error| unknown_name(&error, ""))
    }

    fn preempt(
        &self,
        request: &CandidateRequest,
        who: &Preemptible,
    ) -> Result<Preemption, ApiError> {
        let patience = self.patience.renewed(DEADLINE);
        let watch = Box::new(|_steps| patience.check());
        let found = self.view.state.preemption(request, who, watch);
        found.map_err(|error| unknown_name(&error, ""))
    }
}

/// A parsed question: a function from the state to the answer.
type ParsedQuestion = Box<dyn FnOnce(&ChangedState) -> Result<WhatIfAnswer, ApiError> + Send>;

/// # Errors
/// 400 if the question is invalid regardless of the state.
fn parse(
    question: Question,
    context: &RequestContext,
    version: Microversion,
) -> Result<ParsedQuestion, ApiError> {
    let parse = |query: String| explain::parse_within_body(context, &query, version);
    Ok(match question {
        Question::Fit { at_most, .. } if at_most > CLAIMS_MAX => {
            return Err(ApiError::bad_request(format!(
                "at_most is {at_most}; at most {CLAIMS_MAX} claims are tried"
            )));
        }
        Question::Fit { query, at_most } => {
            let request = parse(query)?;
            Box::new(move |now| now.fit(&request, at_most, DEADLINE).map(WhatIfAnswer::Fit))
        }
        Question::Preempt {
            query,
            types,
            projects,
        } => {
            if !context.head.passes_further_rule {
                return Err(ApiError::forbidden(
                    "The answer to preempt names consumers, which the policy rule \
                     placementd:consumers does not allow to this caller.",
                ));
            }
            let request = parse(query)?;
            let who = preemptible(&types, &projects)?;
            Box::new(move |now| now.preempt(&request, &who).map(WhatIfAnswer::Preempt))
        }
        Question::Explain { query } => {
            let request = parse(query)?;
            Box::new(move |ChangedState { view, patience }| {
                let asked = AnsweredRequest {
                    view: view.clone(),
                    request,
                    version,
                };
                let explained = asked.explain(&patience.renewed(explanations::DEADLINE));
                Ok(WhatIfAnswer::Explain(Box::new(explained?)))
            })
        }
        Question::Capacity {} => Box::new(|ChangedState { view, .. }| {
            let report = view
                .state
                .capacity(None, CapacityBy::Class, CONTENT_ROWS_MAX);
            let over = || ApiError::over_limit("resource classes", CONTENT_ROWS_MAX);
            report.map(WhatIfAnswer::Capacity).ok_or_else(over)
        }),
    })
}

/// # Errors
/// 400 if there is no type, too many names, or a type that cannot be one.
fn preemptible(types: &[String], projects: &[String]) -> Result<Preemptible, ApiError> {
    if types.is_empty() {
        return Err(ApiError::bad_request(
            "preempt needs types: the consumer types that may end, such as [\"INSTANCE\"]",
        ));
    }
    if types.len().max(projects.len()) > NAMES_MAX {
        return Err(ApiError::over_limit("types or projects", NAMES_MAX));
    }
    let parse = |name: &String| {
        let right = "give the name of a consumer type, such as INSTANCE";
        name.parse().map_err(|_| bad_value("types", name, right))
    };
    Ok(Preemptible {
        types: types.iter().map(parse).collect::<Result<_, _>>()?,
        projects: projects
            .iter()
            .map(|id| ProjectId::from(id.as_str()))
            .collect(),
    })
}

async fn changed(response: Response<Body>) -> Result<WriteResponse<Box<RawValue>>, ApiError> {
    let status = response.status().as_u16();
    let body = response
        .into_body()
        .collect()
        .await
        .map_err(|_| ApiError::internal())?
        .to_bytes();
    // Errors may be in HTML.
    let body = serde_json::from_slice(&body).ok();
    Ok(WriteResponse { status, body })
}

/// Builds the request to the API for a write.
fn request(
    context: &RequestContext,
    change: Change<Box<RawValue>>,
    version: Microversion,
) -> Result<Request<Body>, ApiError> {
    let Change { method, path, body } = change;
    // Decoded as the API decodes it.
    let decoded = percent_decode_str(&path).decode_utf8_lossy();
    let is_write = [Method::PUT, Method::POST, Method::DELETE]
        .iter()
        .any(|one| one.as_str() == method);
    let routes = context.services.routes;
    let is_own_read = is_own(&decoded) && !routes.is_own_write(&method, &decoded);
    if !is_write || !path.starts_with('/') || is_own_read {
        return Err(ApiError::bad_request(format!(
            "{method} {path} is not a write of the API; give PUT, POST or DELETE, and a path such as \
             /resource_providers"
        )));
    }
    let prefix = &context.api().settings.public.prefix;
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
