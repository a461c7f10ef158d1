//! The stages of a request before and after its handler.
//!
//! The order is observable by clients, so it is fixed:
//!
//! | | check | error |
//! |---|---|---|
//! | 1 | the shares of the partition and of the address | 429 |
//! | 2 | the token | 401 |
//! | 3 | the share of the user | 429 |
//! | 4 | length of the URL | 414 |
//! | 5 | microversion | 400, 406 |
//! | 6 | the headers for consistency and for an earlier state | 400 |
//! | 7 | length and type of the body | 400 |
//! | 8 | route and method | 404, 405 |
//! | 9 | the version and the headers that the operation needs | 404, 406, 415 |
//! | 10 | policy; for an earlier state also the rule of the history | 403 |
//! | 11 | the body, which is read, or discarded if the operation has none | 408, 413 |
//! | 12 | for writes: space on the disks and for an audit record | 503, 507 |
//!
//! Callers that another listener has authorized, such as operators, skip the first three checks.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue,
    LAST_MODIFIED, LOCATION, VARY,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use tracing::Instrument;
use tracing::field::Empty;

use super::accept::Accept;
use super::answer::{Answer, Caching};
use super::answer_body::AnswerBody;
use super::body::Incoming;
use super::budget::Caller;
use super::policy::{Denied, Target};
use super::progress::Progress;
use super::public_address::PublicAddress;
use super::request_context::{RequestContext, Table};
use super::route::{Needs, Operation, Route, Routes};
use super::state::Server;
use super::{as_of, auth, consistency, cors, headers, searches};
use crate::http::errors::{ApiError, Asked, Format, Varies, code, not_found};
use crate::http::wire::microversion::Microversion;
use crate::http::wire::query::Query;
use crate::http::wire::spelling;
use placement_audit::Listener;
use placement_audit::access::{Peer, WORD_MAX_BYTES, bounded};
use placement_audit::identity::Identity;
use placement_base::contain::contain;
use placement_base::trace;

/// A response with its route.
pub struct Served {
    /// The response to the client.
    pub response: Response<Body>,
    /// The route of the path, if there is one.
    pub route: Option<&'static str>,
}

/// Extension of a response with a streamed body: time limit for the client to take all of it.
#[derive(Debug, Clone, Copy)]
pub struct Within(pub Duration);

/// Extension of an error response: the code of the error.
#[derive(Debug, Clone, Copy)]
pub struct ErrorCode(pub &'static str);

/// Capacity reserved for headers; responses rarely have more.
const USUAL_HEADERS: usize = 16;
const API_VERSION: HeaderName = HeaderName::from_static("openstack-api-version");

/// Answers one request with these routes. It came over a connection from `peer`, or from a caller
/// that another listener has authorized.
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
    let context = trace::of_request(&parts.headers, &progress.request_id);
    // Values chosen by clients are truncated: a span waits in memory until it is exported.
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
    let (parts, peer) = (progress.parts, progress.peer);
    let whole_path = percent_decode_str(parts.uri.path()).decode_utf8_lossy();
    let path = server.api.settings.public.prefix.below(&whole_path);
    // Load balancers request `/`, regardless of the prefix.
    let path = path.or_else(|| (whole_path == "/").then_some("/"));
    let text = |name: HeaderName| headers::text(&parts.headers, name);
    // A missing route is reported later, in its turn; metrics need the route of every request.
    let found = path.and_then(|path| routes.find(path));
    if let Some((route, params)) = &found {
        progress.route = Some(route.path);
        progress.operation = route.rule(parts.method.as_str());
        if server.api.audit.is_on() {
            progress.params = params.clone();
        }
    }
    // `/` reports this node's readiness to load balancers, however busy it is.
    let address = match progress.identity {
        Some(_) => None,
        None => (server.callers).address(peer, progress.client.as_deref()),
    };
    if path != Some("/") && progress.identity.is_none() {
        server.callers.admit(&mut progress.counted)?;
        if let Some(address) = address {
            (server.callers).admit_address(address, &mut progress.counted)?;
        }
        let public = server.api.settings.public.path(&parts.headers);
        let asked = path.map_or_else(|| whole_path.clone(), |path| public + path);
        let identity = auth::identify(&server.api, parts, &asked, peer)
            .instrument(tracing::debug_span!("authorize"))
            .await?;
        let identity = progress.identity.insert(identity);
        (server.callers).admit_user(&identity.user_id, &mut progress.counted)?;
    }
    let user = progress.identity.as_ref();
    let caller = Caller::new(user.map(|user| user.user_id.as_str()), address);
    progress.caller = caller;
    let settings = &server.api.settings;
    let (uri, uri_max) = (parts.uri.path_and_query(), settings.limits.uri_bytes);
    if uri.is_some_and(|uri| uri.as_str().len() > uri_max) {
        return Err(ApiError::uri_too_long(uri_max));
    }
    let asked_version = Microversion::parse(text(API_VERSION).as_deref());
    let version = match &found {
        Some((route, _)) if route.is_own() => asked_version.unwrap_or(Microversion::MAX),
        _ => asked_version?,
    };
    progress.version = Some(version);
    let asked = consistency::parse(&parts.headers)?;
    let as_of = as_of::parse(&parts.method, &parts.headers)?;
    let content_type = text(CONTENT_TYPE).filter(|value| !value.is_empty());
    check_length(text(CONTENT_LENGTH), content_type.is_some())?;
    let (route, params) = found.ok_or_else(|| no_such_path(&settings.public, path.is_some()))?;
    let operation = find_operation(route, parts.method.as_str(), version, |operation| {
        check_headers(operation, content_type.as_deref(), text(ACCEPT).as_deref())
    })?;
    let reads = &settings.reads;
    let usual = match operation.advises {
        true => reads.default.advisory,
        false => reads.default.usual,
    };
    let mut context = RequestContext {
        server: server.clone(),
        routes,
        begun: server.api.clock.monotonic(),
        route: route.path,
        method: operation.method,
        version,
        caller,
        params,
        query: Query::parse_at_most(
            settings.limits.query_parameters,
            parts.uri.query().unwrap_or_default(),
        ),
        body: Bytes::new(),
        base_path: settings.public.path(&parts.headers).into_owned(),
        request_id: progress.traced_by().clone(),
        consistency: asked.unwrap_or(usual),
        as_of,
        headers: match operation.needs {
            Needs::Headers => parts.headers.clone(),
            _ => HeaderMap::new(),
        },
        notes: progress.notes.clone(),
    };
    check_policy(&context, operation, progress.identity.as_ref())?;
    // The body is read only after authorization, so that unauthorized clients can neither make this
    // node wait for a body nor use its memory.
    let incoming = Incoming::new(body, &parts.headers, settings.limits.body_timeout);
    let mut memory = server.admission.body(caller);
    progress.body_unread = match operation.needs {
        Needs::Content => {
            let limit = settings.limits.body_bytes.min(operation.body_max_bytes);
            context.body = incoming.read(limit, &mut memory).await?;
            false
        }
        _ => !incoming.discard().await?,
    };
    // Checked before the work that a refusal would waste.
    if progress.is_write() {
        server.api.write.has_room()?;
        if let Some(why) = server.api.audit.why_not() {
            return Err(ApiError::cannot_record(why));
        }
    }
    (operation.run)(&context).await
}

/// 404. Outside the prefix, the message names the prefix.
fn no_such_path(public: &PublicAddress, below_prefix: bool) -> ApiError {
    let mut error = not_found::path(Varies::No);
    if !below_prefix && !public.prefix.is_root() {
        error.message = format!("This node serves the API below {}.", public.prefix);
    }
    error
}

/// A body needs a content type, even if the operation ignores it.
fn check_length(length: Option<Cow<'_, str>>, has_type: bool) -> Result<(), ApiError> {
    let Some(length) = length.filter(|length| !length.is_empty()) else {
        return Ok(());
    };
    let wrong = match spelling::integer(&length) {
        None => "content-length header must be an integer",
        Some(1..) if !has_type => "content-type header required when content-length > 0",
        Some(_) => return Ok(()),
    };
    Err(ApiError::bad_request(wrong).varying(Varies::No))
}

/// Finds the operation and checks version and headers, in the order of this route.
fn find_operation(
    route: &'static Route,
    method: &str,
    version: Microversion,
    check_headers: impl Fn(&Operation) -> Result<(), ApiError>,
) -> Result<&'static Operation, ApiError> {
    let operations = route.operations.iter();
    let mut known = (operations.filter(|operation| operation.method == method)).peekable();
    let Some(first) = known.peek() else {
        return Err(ApiError::method_not_allowed(route.allow()));
    };
    if first.headers_first {
        check_headers(first)?;
    }
    let too_old = if first.too_old_is_405 {
        ApiError::method_too_new(format!("It requires microversion 1.{}.", first.since))
    } else {
        not_found::path(Varies::Yes)
    };
    let fits = |operation: &&Operation| {
        let end = operation.until.checked_add(1);
        version.from(operation.since) && end.is_none_or(|end| !version.from(end))
    };
    let operation = known.find(fits).ok_or(too_old)?;
    if !operation.headers_first {
        check_headers(operation)?;
    }
    Ok(operation)
}

fn check_headers(
    operation: &Operation,
    content_type: Option<&str>,
    accept: Option<&str>,
) -> Result<(), ApiError> {
    match operation.needs {
        Needs::Nothing | Needs::Headers => Ok(()),
        Needs::Accept if Accept::parse(accept).allows_json() => Ok(()),
        Needs::Accept => Err(ApiError::not_acceptable()),
        Needs::Content => match content_type.and_then(|value| value.split(';').next()) {
            Some("application/json") => Ok(()),
            given => Err(ApiError::unsupported_media_type(given.unwrap_or("None"))),
        },
    }
}

fn check_policy(
    context: &RequestContext,
    operation: &Operation,
    identity: Option<&Identity>,
) -> Result<(), ApiError> {
    let (Some(action), Some(identity)) = (operation.policy, identity) else {
        return Ok(());
    };
    let queried = match operation.queried_project {
        Some(parameter) => Some(context.query()?.last(parameter)),
        None => None,
    };
    let target = queried.map_or_else(|| Target::of_caller(identity), Target::of_project);
    authorize(context, action, identity, target)?;
    match context.as_of {
        // The operation's rule may be limited to a project, but an earlier state shows all projects
        // unless the query names one.
        Some(_) => {
            let target = Target::of_project(queried.flatten());
            authorize(context, as_of::RULE, identity, target)
        }
        None => Ok(()),
    }
}

/// # Errors
/// 403 if no rule grants access or the token has the wrong scope.
fn authorize(
    context: &RequestContext,
    action: &str,
    identity: &Identity,
    target: Target<'_>,
) -> Result<(), ApiError> {
    let authorized = (context.server.api.policy).authorize(action, identity, target);
    authorized.map_err(|denied| {
        ApiError::forbidden(match denied {
            Denied::ByRule => format!("Policy does not allow {action} to be performed."),
            Denied::ByScope => {
                format!("{action} requires a token of a project, not of the system or a domain.")
            }
        })
    })
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
/// 503 if there is no memory to keep the answer until the client has taken it. Answers to writes
/// are short and always given, as the write has been carried out.
fn success(
    server: &Server,
    progress: &mut Progress<'_>,
    answer: Answer,
) -> Result<Response<Body>, ApiError> {
    let parts = progress.parts;
    let has_body = !answer.body.is_empty();
    let within = answer.stream.as_ref().map(|stream| stream.within);
    let (content_type, body) = match answer.stream {
        // A stream has a place in the budget of streams, and is no longer counted as a request.
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
        response.extensions_mut().insert(Within(within));
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
        tracing::error!(request_id, reason = error.message, "answering 500");
    }
    let head = parts.method == Method::HEAD;
    let accept = headers::text(&parts.headers, ACCEPT);
    let sent = headers::text(&parts.headers, CONTENT_TYPE);
    let format = match head {
        true => Format::Html,
        false => Accept::parse(accept.as_deref()).error_format(),
    };
    let asked = Asked {
        method: parts.method.as_str(),
        accept: accept.as_deref(),
        content_type: sent.as_deref().filter(|sent| !sent.is_empty()),
        request_id,
        since_23: (progress.version).is_some_and(|version| version.from(23)),
    };
    let (body, content_type) = error.render(format, asked);
    let body = match head {
        true => Vec::new(),
        false => vec![body],
    };
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
