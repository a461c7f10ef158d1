//! The handling of a request from its connection to its response: runs the stages and the handler.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, LAST_MODIFIED,
    LOCATION, VARY,
};
use http::{Method, Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use tracing::Instrument;
use tracing::field::Empty;

use super::accept::Accept;
use super::answer::{Answer, Caching};
use super::answer_body::AnswerBody;
use super::headers::{self, API_VERSION};
use super::progress::Progress;
use super::request_context::Table;
use super::route::Routes;
use super::stages::{self, Passage};
use super::state::Server;
use super::{consistency, cors, searches};
use crate::http::errors::{ApiError, Format, RequestParts, Varies, code};
use crate::http::wire::microversion::Microversion;
use placement_audit::Listener;
use placement_audit::access::{Peer, WORD_MAX_BYTES, bounded};
use placement_audit::identity::Identity;
use placement_base::contain::contain;
use placement_base::log_messages::log;
use placement_base::trace;

/// A response with its route.
pub struct Served {
    /// The response to the client.
    pub response: Response<Body>,
    /// The route of the path, if there is one.
    pub route: Option<&'static str>,
}

/// Extension of a response with a streamed body: time limit for the client to receive all of it.
#[derive(Debug, Clone, Copy)]
pub struct BodyTimeLimit(pub Duration);

/// Extension of an error response: the code of the error.
#[derive(Debug, Clone, Copy)]
pub struct ErrorCode(pub &'static str);

/// Capacity reserved for headers; responses rarely have more.
const USUAL_HEADERS: usize = 16;

/// Answers one request, which arrived on a connection from `peer`, with these routes. `authorized`
/// is set if another listener has authorized the caller.
pub(crate) async fn respond(
    server: Arc<Server>,
    routes: &'static Routes,
    request: Request<Body>,
    peer: Option<Peer>,
    authorized: Option<Box<(Listener, Identity)>>,
) -> Served {
    let (parts, body) = request.into_parts();
    let mut progress = Progress::new(&server.api, &parts, peer, &body);
    if let Some(authorized) = authorized {
        let (listener, caller) = *authorized;
        (progress.listener, progress.identity) = (listener, Some(caller));
    }
    let mut line = progress.line();
    let context = trace::request_context(&parts.headers, &progress.request_id);
    // Values chosen by clients are truncated, because a span stays in memory until it is exported.
    let span = trace::span_in(context, || {
        tracing::debug_span!(
            "request",
            otel.kind = "server",
            otel.status_code = Empty,
            request_id = progress.request_id,
            global_request_id = progress.global_request_id,
            http.request.method = &*bounded(parts.method.as_str(), WORD_MAX_BYTES),
            http.route = Empty,
            http.response.status_code = Empty,
        )
    });
    line.trace_id = span.in_scope(trace::id);
    let response = async {
        // Boxed, as the connection's task moves the future of a response several times.
        let handled = Box::pin(handle(&server, routes, body, &mut progress));
        let handled = contain(handled).await;
        let result = handled.unwrap_or_else(|_panicked| Err(ApiError::internal()));
        let response = finish(&server, &mut progress, result);
        match progress.keep(response.status()).await {
            Ok(()) => response,
            Err(error) => finish(&server, &mut progress, Err(error)),
        }
    }
    .instrument(span.clone())
    .await;
    span.record("http.route", progress.route);
    span.record("http.response.status_code", response.status().as_u16());
    if response.status().is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    let searched = progress.notes.lock().searched.take();
    if let Some(searched) = searched {
        let api = &server.api;
        let kept = progress.searched(&searched);
        searches::keep(
            &server.searches,
            &api.clock,
            &*api.offload,
            kept,
            searched.asked,
        );
    }
    if progress.code == Some(code::SEARCH_ENDED) {
        server.searches.note_ended();
    }
    line.microversion = progress.version.map(Microversion::text);
    if let Some(caller) = progress.identity.take() {
        (line.user, line.user_name) = (Some(caller.user_id), caller.user_name);
        (line.project, line.project_name) = (caller.project_id, caller.project_name);
    }
    line.answered(&response);
    Served {
        response,
        route: progress.route,
    }
}

impl Table for Routes {
    fn own_rules(&self) -> Vec<[&'static str; 3]> {
        let own = self.own();
        let rules = own.filter_map(|(path, one)| Some([one.method, path, one.policy?]));
        rules.collect()
    }

    fn is_own_write(&self, method: &str, path: &str) -> bool {
        let rule = self.find(path).and_then(|(route, _)| route.rule(method));
        rule.is_some_and(placement_policy::is_own_write)
    }

    fn rehearse(
        &'static self,
        server: Arc<Server>,
        request: Request<Body>,
    ) -> BoxFuture<'static, Response<Body>> {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let mut progress = Progress::new(&server.api, &parts, None, &body);
            progress.identity = Some(Identity::operator(None));
            let handled = handle(&server, self, body, &mut progress).await;
            finish(&server, &mut progress, handled)
        })
    }
}

/// Answers any request with this error.
pub(crate) fn refuse(
    server: &Server,
    request: Request<Body>,
    peer: Option<Peer>,
    error: ApiError,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let mut progress = Progress::new(&server.api, &parts, peer, &body);
    let line = progress.line();
    let response = finish(server, &mut progress, Err(error));
    progress.put(response.status());
    line.answered(&response);
    response
}

async fn handle(
    server: &Arc<Server>,
    routes: &'static Routes,
    body: Body,
    progress: &mut Progress<'_>,
) -> Result<Answer, ApiError> {
    let path = percent_decode_str(progress.parts.uri.path()).decode_utf8_lossy();
    let mut request = Passage::new(server, routes, &path, body, progress);
    stages::pass(&mut request).await?;
    request.answer().await
}

/// Builds the response with all its headers.
fn finish(
    server: &Server,
    progress: &mut Progress<'_>,
    result: Result<Answer, ApiError>,
) -> Response<Body> {
    let parts = progress.parts;
    let result = result.and_then(|answer| success(server, progress, answer));
    let (mut response, varies) = match result {
        Ok(response) => (response, Varies::Yes),
        Err(error) => {
            progress.code = Some(error.code);
            let mut response = failure(server, progress, &error);
            response.extensions_mut().insert(ErrorCode(error.code));
            (response, error.varies)
        }
    };
    let headers = response.headers_mut();
    if let Some(version) = progress.version {
        headers.insert(API_VERSION, HeaderValue::from_static(version.header()));
        if varies == Varies::Yes {
            headers.insert(VARY, HeaderValue::from(API_VERSION));
        }
    }
    let settings = &server.api.settings;
    cors::decorate(&settings.cors, &parts.method, &parts.headers, &mut response);
    let headers = response.headers_mut();
    headers::put(headers, headers::REQUEST_ID, &progress.request_id);
    let noted = progress.notes.lock().state;
    let (position, effective) = match noted {
        Some(noted) => (noted.position(), Some(noted.effective)),
        None => (server.api.read.position(), None),
    };
    consistency::write_headers(headers, &settings.site, &position, effective);
    if progress.body_unread {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// # Errors
/// 503 if the caller's share of memory cannot hold the answer until the client has received it. An
/// answer to a write is never refused, because the write has been committed. It is short.
fn success(
    server: &Server,
    progress: &mut Progress<'_>,
    answer: Answer,
) -> Result<Response<Body>, ApiError> {
    let parts = progress.parts;
    let has_body = !answer.body.is_empty();
    let within = answer.stream.as_ref().map(|stream| stream.within);
    let (content_type, body) = match answer.stream {
        // A stream is counted in the budget of streams, and no longer as a request in flight.
        Some(stream) => (Some(stream.content_type), stream.body),
        None => {
            let mut memory = server.admission.answer(progress.caller);
            if parts.method == Method::GET {
                memory.grow_to(answer.body.iter().map(Bytes::len).sum())?;
            }
            let counted = std::mem::take(&mut progress.counted);
            let body = Body::new(AnswerBody::new(answer.body, counted, memory));
            (has_body.then_some("application/json"), body)
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    if let Some(within) = within {
        response.extensions_mut().insert(BodyTimeLimit(within));
    }
    let headers = response.headers_mut();
    headers.reserve(USUAL_HEADERS);
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    if let Some(path) = &answer.location {
        let url = server.api.settings.public.url(parts);
        headers::put(headers, LOCATION, &format!("{url}{path}"));
    }
    if let Some(caching) = answer.caching {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Caching::At(time) = caching {
            headers::put(headers, LAST_MODIFIED, &httpdate::fmt_http_date(time));
        }
    }
    Ok(response)
}

fn failure(server: &Server, progress: &mut Progress<'_>, error: &ApiError) -> Response<Body> {
    let (parts, request_id) = (progress.parts, &progress.request_id);
    if error.status == StatusCode::INTERNAL_SERVER_ERROR {
        log!(
            REQUEST_FAILED,
            request_id,
            reason = error.message,
            "answering 500"
        );
    }
    let head = parts.method == Method::HEAD;
    let accept = headers::text(&parts.headers, ACCEPT);
    let sent = headers::text(&parts.headers, CONTENT_TYPE);
    let format = if head {
        Format::Html
    } else {
        Accept::parse(accept.as_deref()).error_format()
    };
    let asked = RequestParts {
        method: parts.method.as_str(),
        accept: accept.as_deref(),
        content_type: sent.as_deref().filter(|sent| !sent.is_empty()),
        request_id,
        since_23: (progress.version).is_some_and(|version| version.from(23)),
    };
    let (body, content_type) = error.render(format, asked);
    let body = if head { Vec::new() } else { vec![body] };
    let counted = std::mem::take(&mut progress.counted);
    let memory = server.admission.answer(progress.caller);
    let mut response = Response::new(Body::new(AnswerBody::new(body, counted, memory)));
    *response.status_mut() = error.status;
    let headers = response.headers_mut();
    if head {
        // hyper omits it, as it does not know the length of the answer to GET.
        headers.insert(CONTENT_LENGTH, HeaderValue::from(0));
    }
    headers::put(headers, CONTENT_TYPE, content_type);
    if let Some((name, value)) = error.header.as_deref() {
        headers::put(headers, name.clone(), value);
    }
    response
}
