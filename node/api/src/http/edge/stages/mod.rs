//! The checks of a request before its handler, in their order. Clients can observe the order.

mod passage;

use std::borrow::Cow;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_LENGTH};
use tracing::Instrument;

pub(super) use self::passage::Passage;
use self::passage::{MATCHED, Matched};
use crate::http::edge::accept::Accept;
use crate::http::edge::body::Incoming;
use crate::http::edge::budget::Caller;
use crate::http::edge::headers::API_VERSION;
use crate::http::edge::public_address::PublicAddress;
use crate::http::edge::request_context::{Head, RequestContext, Services};
use crate::http::edge::route::{Operation, RequiredHeaders, Route};
use crate::http::edge::{as_of, auth, consistency};
use crate::http::errors::{ApiError, Varies, not_found};
use crate::http::wire::microversion::Microversion;
use crate::http::wire::query::Query;
use crate::http::wire::spelling;
use placement_audit::identity::Identity;
use placement_policy::{Denied, Target};

/// A check of every request.
pub struct Stage {
    /// Name, unique among the stages.
    pub name: &'static str,
    /// Description of the check, as a sentence.
    pub does: &'static str,
    /// The statuses with which it refuses requests.
    pub refuses_with: &'static [u16],
    check: Check,
}

/// The function of a stage. The asynchronous functions are variants of their own, as a table of
/// functions that return futures would need an allocation for each request.
enum Check {
    Now(fn(&mut Passage<'_, '_>) -> Result<(), ApiError>),
    Authenticate,
    ReadBody,
}

/// The stages, in the order in which every request passes them. The first refusal is the answer.
pub static STAGES: [Stage; 12] = [
    Stage {
        name: "partition and address limits",
        does: "Counts the request for its partition and for the address of the client.",
        refuses_with: &[429],
        check: Check::Now(limit_address),
    },
    Stage {
        name: "authentication",
        does: "Authenticates the caller, as `[auth] strategy` says.",
        refuses_with: &[401, 503],
        check: Check::Authenticate,
    },
    Stage {
        name: "user limits",
        does: "Counts the request for its user.",
        refuses_with: &[429],
        check: Check::Now(limit_user),
    },
    Stage {
        name: "URL length",
        does: "Checks the length of the path and query.",
        refuses_with: &[414],
        check: Check::Now(limit_url),
    },
    Stage {
        name: "microversion",
        does: "Parses `OpenStack-API-Version`; this service's own routes ignore an invalid one.",
        refuses_with: &[400, 406],
        check: Check::Now(parse_version),
    },
    Stage {
        name: "consistency headers",
        does: "Parses `Placement-Consistency`, `Placement-Min-Index` and `Placement-As-Of`.",
        refuses_with: &[400],
        check: Check::Now(parse_consistency),
    },
    Stage {
        name: "body headers",
        does: "Checks that `Content-Length` is a number, and that a body has a `Content-Type`.",
        refuses_with: &[400],
        check: Check::Now(check_body_headers),
    },
    Stage {
        name: "route",
        does: "Finds the route of the path and checks that it has the method.",
        refuses_with: &[404, 405],
        check: Check::Now(find_route),
    },
    Stage {
        name: "operation",
        does: "Checks that the operation exists in the microversion, and the `Accept` or \
               `Content-Type` that it needs; the route defines which comes first.",
        refuses_with: &[404, 405, 406, 415],
        check: Check::Now(find_operation),
    },
    Stage {
        name: "policy",
        does: "Checks the policy rule of the operation, for `Placement-As-Of` also \
               `placementd:history`; a rule about the project in the query needs a valid query.",
        refuses_with: &[400, 403],
        check: Check::Now(check_policy),
    },
    Stage {
        name: "body",
        does: "Reads the body, or discards it if the operation has none. Only authorized clients \
               reach this stage, so others can neither delay the node nor use its memory.",
        refuses_with: &[400, 408, 413, 503],
        check: Check::ReadBody,
    },
    Stage {
        name: "room for a write",
        does: "For writes: checks that this node accepts writes (a node that serves a backup does \
               not), can queue another write and can store an audit record.",
        refuses_with: &[403, 503],
        check: Check::Now(check_room),
    },
];

impl Stage {
    /// # Errors
    /// A refusal with one of the statuses of [`Stage::refuses_with`].
    async fn pass(&self, request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
        let passed = match self.check {
            Check::Now(check) => check(request),
            Check::Authenticate => authenticate(request).await,
            Check::ReadBody => read_body(request).await,
        };
        passed.inspect_err(|error| {
            let status = error.status.as_u16();
            debug_assert!(
                self.refuses_with.contains(&status),
                "the stage {:?} does not declare {status}",
                self.name
            );
        })
    }
}

/// Passes a request through all stages.
///
/// # Errors
/// The refusal of the first stage that refuses it.
pub(super) async fn pass(request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
    for stage in &STAGES {
        stage.pass(request).await?;
    }
    Ok(())
}

fn limit_address(request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
    if !request.is_limited {
        return Ok(());
    }
    let (callers, counted) = (&request.server.callers, &mut request.progress.counted);
    callers.admit(counted)?;
    match request.address {
        Some(address) => callers.admit_address(address, counted),
        None => Ok(()),
    }
}

async fn authenticate(request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
    if !request.is_limited {
        return Ok(());
    }
    let (api, parts, peer) = (&request.server.api, request.parts, request.progress.peer);
    let asked = match request.path {
        Some(path) => api.settings.public.path(&parts.headers) + path,
        None => Cow::Borrowed(request.whole_path),
    };
    let identity = auth::identify(api, parts, &asked, peer)
        .instrument(tracing::debug_span!("authorize"))
        .await?;
    request.progress.identity = Some(identity);
    Ok(())
}

fn limit_user(request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
    let progress = &mut *request.progress;
    let user = progress.identity.as_ref().map(|user| user.user_id.as_str());
    if request.is_limited
        && let Some(user) = user
    {
        (request.server.callers).admit_user(user, &mut progress.counted)?;
    }
    progress.caller = Caller::new(user, request.address);
    Ok(())
}

fn limit_url(request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
    let max = request.server.api.settings.limits.uri_bytes;
    match request.parts.uri.path_and_query() {
        Some(url) if url.as_str().len() > max => Err(ApiError::uri_too_long(max)),
        _ => Ok(()),
    }
}

fn parse_version(request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
    let asked = Microversion::parse(request.text(API_VERSION).as_deref());
    request.version = match &request.found {
        Some((route, _)) if route.is_own() => asked.unwrap_or(Microversion::MAX),
        _ => asked?,
    };
    request.progress.version = Some(request.version);
    Ok(())
}

fn parse_consistency(request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
    let parts = request.parts;
    request.asked = consistency::parse(&parts.headers)?;
    request.as_of = as_of::parse(&parts.method, &parts.headers)?;
    Ok(())
}

/// A body needs a content type, even if the operation ignores it.
fn check_body_headers(request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
    let length = request.text(CONTENT_LENGTH);
    let Some(length) = length.filter(|length| !length.is_empty()) else {
        return Ok(());
    };
    let wrong = match spelling::integer(&length) {
        None => "content-length header must be an integer",
        Some(1..) if request.content_type().is_none() => {
            "content-type header required when content-length > 0"
        }
        Some(_) => return Ok(()),
    };
    Err(ApiError::bad_request(wrong).varying(Varies::No))
}

fn find_route(request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
    let Some((route, _)) = &request.found else {
        let public = &request.server.api.settings.public;
        return Err(no_such_path(public, request.path.is_some()));
    };
    let method = request.parts.method.as_str();
    if route.operations.iter().any(|one| one.method == method) {
        Ok(())
    } else {
        Err(ApiError::method_not_allowed(route.allow()))
    }
}

/// 404. For a path outside the prefix, the message names the prefix.
fn no_such_path(public: &PublicAddress, below_prefix: bool) -> ApiError {
    let mut error = not_found::path(Varies::No);
    if !below_prefix && !public.prefix.is_root() {
        error.message = format!("This node serves the API below {}.", public.prefix);
    }
    error
}

/// Finds the operation and composes the context for its handler.
fn find_operation(request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
    let found = request.found.take();
    let (route, params) = found.expect("the stage `route` refuses a path without a route");
    let content_type = request.content_type();
    let accept = request.text(ACCEPT);
    let method = request.parts.method.as_str();
    let operation = in_version(route, method, request.version, |operation| {
        check_headers(operation, content_type.as_deref(), accept.as_deref())
    })?;
    let context = compose(request, route.path, operation, params);
    request.matched = Some(Matched { operation, context });
    Ok(())
}

/// Finds the operation and checks version and headers, in the order of this route.
fn in_version(
    route: &'static Route,
    method: &str,
    version: Microversion,
    check_headers: impl Fn(&Operation) -> Result<(), ApiError>,
) -> Result<&'static Operation, ApiError> {
    let operations = route.operations.iter();
    let mut known = (operations.filter(|operation| operation.method == method)).peekable();
    let first = known
        .peek()
        .expect("the stage `route` refuses a method without operations");
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
        RequiredHeaders::Nothing | RequiredHeaders::Headers => Ok(()),
        RequiredHeaders::Accept if Accept::parse(accept).allows_json() => Ok(()),
        RequiredHeaders::Accept => Err(ApiError::not_acceptable()),
        RequiredHeaders::Content => match content_type.and_then(|value| value.split(';').next()) {
            Some("application/json") => Ok(()),
            given => Err(ApiError::unsupported_media_type(given.unwrap_or("None"))),
        },
    }
}

fn compose(
    request: &Passage<'_, '_>,
    route: &'static str,
    operation: &Operation,
    params: Vec<String>,
) -> RequestContext {
    let (server, parts, progress) = (request.server, request.parts, &*request.progress);
    let settings = &server.api.settings;
    let reads = &settings.reads;
    let usual = if operation.advises {
        reads.default.advisory
    } else {
        reads.default.usual
    };
    let head = Head {
        begun: server.api.clock.monotonic(),
        route,
        method: operation.method,
        version: request.version,
        caller: progress.caller,
        params,
        query: Query::parse_at_most(
            settings.limits.query_parameters,
            parts.uri.query().unwrap_or_default(),
        ),
        base_path: settings.public.path(&parts.headers).into_owned(),
        request_id: progress.traced_by().clone(),
        consistency: request.asked.unwrap_or(usual),
        as_of: request.as_of,
        passes_further_rule: false,
        headers: match operation.needs {
            RequiredHeaders::Headers => parts.headers.clone(),
            _ => HeaderMap::new(),
        },
    };
    RequestContext {
        head,
        body: Bytes::new(),
        services: Services {
            server: server.clone(),
            routes: request.routes,
        },
        notes: progress.notes.clone(),
    }
}

fn check_policy(request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
    let Matched { operation, context } = request.matched.as_mut().expect(MATCHED);
    let (Some(action), Some(identity)) = (operation.policy, request.progress.identity.as_ref())
    else {
        return Ok(());
    };
    let queried = match operation.queried_project {
        Some(parameter) => Some(context.query()?.last(parameter)),
        None => None,
    };
    let target = queried.map_or_else(|| Target::for_caller(identity), Target::for_project);
    authorize(context, action, identity, target)?;
    if context.head.as_of.is_some() {
        // The operation's rule may be limited to a project, but an earlier state shows all projects
        // unless the query names one.
        let target = Target::for_project(queried.flatten());
        authorize(context, as_of::RULE, identity, target)?;
    }
    if let Some(further) = operation.further_rule {
        let authorized = authorize(context, further, identity, Target::for_caller(identity));
        context.head.passes_further_rule = authorized.is_ok();
    }
    Ok(())
}

/// # Errors
/// 403 if no rule grants access or the token has the wrong scope.
fn authorize(
    context: &RequestContext,
    action: &str,
    identity: &Identity,
    target: Target<'_>,
) -> Result<(), ApiError> {
    let authorized = (context.api().policy).authorize(action, identity, target);
    authorized.map_err(|denied| {
        ApiError::forbidden(match denied {
            Denied::ByRule => format!("Policy does not allow {action} to be performed."),
            Denied::ByScope => {
                format!("{action} requires a token of a project, not of the system or a domain.")
            }
        })
    })
}

async fn read_body(request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
    let limits = &request.server.api.settings.limits;
    let body = std::mem::take(&mut request.body);
    let incoming = Incoming::new(body, &request.parts.headers, limits.body_timeout);
    let memory = request.server.admission.body(request.progress.caller);
    let memory = request.memory.insert(memory);
    let Matched { operation, context } = request.matched.as_mut().expect(MATCHED);
    request.progress.body_unread = match operation.needs {
        RequiredHeaders::Content => {
            let limit = limits.body_bytes.min(operation.body_max_bytes);
            context.body = incoming.read(limit, memory).await?;
            false
        }
        _ => !incoming.discard().await?,
    };
    Ok(())
}

/// If this node cannot accept a write, refuses it before any work is done.
fn check_room(request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
    if !request.progress.is_write() {
        return Ok(());
    }
    let api = &request.server.api;
    api.write.has_room()?;
    match api.audit.why_not() {
        Some(why) => Err(ApiError::cannot_record(why)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> String {
        let mut page = "# Stages of a request\n\n\
             Every request to the REST API passes these checks in this order, before its handler.\n\
             The first refusal is the answer.\n\
             Requests to `/` skip the first three, and so do callers that another listener has \
             authorized, such as operators.\n\n\
             | | stage | check | status |\n|---|---|---|---|\n"
            .to_owned();
        for (number, stage) in (1..).zip(&STAGES) {
            let Stage { name, does, .. } = stage;
            let statuses: Vec<_> = stage.refuses_with.iter().map(u16::to_string).collect();
            page += &format!("| {number} | {name} | {does} | {} |\n", statuses.join(", "));
        }
        page
    }

    #[test]
    fn page_is_up_to_date() {
        placement_docs::assert_kept("request-stages.md", &page());
    }
}
