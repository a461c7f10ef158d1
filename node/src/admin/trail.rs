//! The audit records of the admin listener: one for each action, for each download of a backup, a
//! log or settings, and for each unauthorized request.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

use super::failed;
use super::pages::User;
use placement_audit::access::{NamedClient, Recorded};
use placement_audit::{Audit, Caller, Listener, Origin, Outcome, Record, RequestTarget};
use placement_base::world::UuidSource;
use placement_cluster::internal_actions::{ActionLog, InternalAction};
use placement_peer::tls::PeerCertificate;

/// Requests that are recorded although they change nothing, because they return the cluster's
/// state, names from this node's log, or its configuration.
const HANDED_OUT: [&str; 3] = ["/v1/backup", "/v1/log", "/v1/settings"];

/// Creates the audit records of one listener.
#[derive(Clone)]
pub(crate) struct Recording {
    pub(crate) audit: Audit,
    pub(crate) ids: Arc<dyn UuidSource>,
    pub(crate) listener: Listener,
}

impl Recording {
    /// A record of a request that begins now; its outcome is not known yet.
    fn begin(&self, user: Option<String>, origin: Origin, asked: RequestTarget) -> Record {
        Record {
            time: self.audit.now(),
            node: self.audit.node(),
            listener: self.listener,
            request_id: format!("req-{}", self.ids.uuid().as_hyphenated()),
            global_request_id: None,
            caller: user.map(|name| Caller {
                user: Some(name),
                ..Caller::default()
            }),
            origin,
            asked,
            outcome: Outcome::Unknown,
            status: None,
            code: None,
            place: None,
            term: None,
            ms: 0.0,
        }
    }
}

/// The requested action as text: an extension of the response.
#[derive(Clone)]
pub(crate) struct Detail(pub(crate) String);

/// Actions of the leader for a joining node, or by itself, are recorded like operators' actions.
impl ActionLog for Recording {
    fn record(&self, action: InternalAction) {
        if !self.audit.is_on() {
            return;
        }
        // Internal paths are valid URIs.
        let uri: Uri = action.path.parse().unwrap_or_default();
        let asked = RequestTarget::new(&Method::POST, &uri).detailed(&action.detail);
        let mut record = self.begin(Some(action.actor), Origin::default(), asked);
        record.outcome = if action.done {
            Outcome::Committed
        } else {
            Outcome::Refused
        };
        self.audit.put(record);
    }
}

/// The node that relayed a request: an extension of the request.
#[derive(Debug, Clone)]
pub(super) struct Relayed {
    pub(super) by: u64,
    /// The owner of the operator's certificate, as that node reports it.
    pub(super) operator: Option<String>,
}

/// A request in progress. If it is dropped, its record says that the outcome is unknown.
struct PendingRecord {
    audit: Audit,
    is_action: bool,
    begun: Instant,
    record: Option<Record>,
}

impl PendingRecord {
    /// The record of an ended request, once.
    fn end(&mut self) -> Option<Record> {
        Some(Record {
            time: self.audit.now(),
            ms: self.begun.elapsed().as_micros() as f64 / 1000.0,
            ..self.record.take()?
        })
    }
}

impl Drop for PendingRecord {
    fn drop(&mut self) {
        if self.is_action
            && let Some(record) = self.end()
        {
            self.audit.put(record);
        }
    }
}

/// The caller: the logged-in user, the owner of the certificate, or the operator whom another node
/// reports. `None`: a local process.
pub(super) fn operator(request: &Request) -> Option<String> {
    let extensions = request.extensions();
    if let Some(User { token, .. }) = extensions.get() {
        return Some(token.identity.user_id.clone());
    }
    match extensions.get() {
        None => extensions.get().and_then(PeerCertificate::owner),
        Some(Relayed { by, operator }) => Some(match operator {
            // The reported name comes last, so that it cannot pass for another one.
            Some(operator) => format!("node {by} for {operator}"),
            None => format!("node {by}"),
        }),
    }
}

/// Middleware that records requests. Like a write, an operator's change is acknowledged only after
/// its record is kept. But it is carried out even if no record can be kept, because operators need
/// this listener to repair a node.
pub(crate) async fn recorded(
    State(recording): State<Recording>,
    request: Request,
    next: Next,
) -> Response {
    if !recording.audit.is_on() {
        return next.run(request).await;
    }
    let route = request.extensions().get::<MatchedPath>();
    let asked = RequestTarget {
        route: route.map(|route| route.as_str().to_owned()),
        ..RequestTarget::new(request.method(), request.uri())
    };
    let named = request
        .extensions()
        .get::<NamedClient>()
        .map(|NamedClient(client)| client.as_str());
    let origin = Origin::new(named, request.extensions().get().copied());
    let is_handed_out = HANDED_OUT.contains(&request.uri().path());
    let mut waiting = PendingRecord {
        is_action: !request.method().is_safe() || is_handed_out,
        begun: Instant::now(),
        record: Some(recording.begin(operator(&request), origin, asked)),
        audit: recording.audit,
    };
    let response = next.run(request).await;
    if let Some(Recorded) = response.extensions().get() {
        waiting.record = None;
        return response;
    }
    let status = response.status();
    let outcome = match status {
        // A login or logout redirects the browser.
        status if status.is_success() || status.is_redirection() => Outcome::Committed,
        // The leader may have carried out the action.
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::INTERNAL_SERVER_ERROR => Outcome::Unknown,
        _ => Outcome::Refused,
    };
    let is_refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
    let Some(mut record) = (waiting.end()).filter(|_| waiting.is_action || is_refused) else {
        return response;
    };
    (record.outcome, record.status) = (outcome, Some(status.as_u16()));
    if let Some(User { token, .. }) = response.extensions().get() {
        record.caller = Some(Caller::from(&token.identity));
    }
    if let Some(Detail(detail)) = response.extensions().get() {
        record.asked = record.asked.detailed(detail);
    }
    if waiting.audit.keep(record).await {
        return response;
    }
    let detail = "the request was carried out, but this node could not keep its audit record in time \
        ([audit])";
    failed(StatusCode::SERVICE_UNAVAILABLE, detail).into_response()
}
