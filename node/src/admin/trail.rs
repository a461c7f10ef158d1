//! The audit records of the operators' door: one for each action, for each backup that is handed out, and for each
//! request that was not let in.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

use super::error;
use crate::cluster::internal_actions::{ActionLog, InternalAction};
use crate::tls::Shown;
use placement_api::access::Peer;
use placement_api::audit::{Asked, Audit, Caller, Door, Outcome, Record, Whence};
use placement_api::world::UuidSource;

/// What takes the state of the cluster away is told, though it changes nothing.
const TAKES_ALL: &str = "/v1/backup";

/// What makes the records.
#[derive(Clone)]
pub(crate) struct Recording {
    pub(crate) audit: Audit,
    pub(crate) ids: Arc<dyn UuidSource>,
}

/// What an operator asked for, as text for a person; among the extensions of the response.
#[derive(Clone)]
pub(super) struct Detail(pub(super) String);

/// What the leader does for a node that joins, or by itself, is kept as if an operator had asked for it.
impl ActionLog for Recording {
    fn record(&self, action: InternalAction) {
        if !self.audit.is_on() {
            return;
        }
        // A path of ours is one.
        let uri: Uri = action.path.parse().unwrap_or_default();
        let asked = Asked::new(&Method::POST, &uri);
        self.audit.put(Record {
            time: self.audit.now(),
            node: self.audit.node(),
            door: Door::Admin,
            request_id: format!("req-{}", self.ids.uuid().as_hyphenated()),
            global_request_id: None,
            caller: Some(Caller {
                user: Some(action.actor),
                ..Caller::default()
            }),
            whence: Whence::default(),
            asked: asked.detailed(&action.detail),
            outcome: match action.done {
                true => Outcome::Committed,
                false => Outcome::Refused,
            },
            status: None,
            code: None,
            place: None,
            ms: 0.0,
        });
    }
}

/// Among the extensions of a request: where it came in.
#[derive(Debug, Clone)]
pub(super) struct Relayed {
    pub(super) by: u64,
    /// Whom the certificate named that was shown there, as that node says.
    pub(super) operator: Option<String>,
}

/// A request whose end is waited for. If it is dropped before, its record says so.
struct Waiting {
    audit: Audit,
    request_id: String,
    peer: Option<Peer>,
    /// Whom the certificate names, where one was shown, and the node that passes this on.
    operator: Option<String>,
    method: Method,
    uri: Uri,
    route: Option<String>,
    begun: Instant,
    told: bool,
}

impl Waiting {
    fn record(
        &self,
        outcome: Outcome,
        status: Option<StatusCode>,
        said: Option<&Detail>,
    ) -> Record {
        let asked = Asked {
            route: self.route.clone(),
            ..Asked::new(&self.method, &self.uri)
        };
        Record {
            time: self.audit.now(),
            node: self.audit.node(),
            door: Door::Admin,
            request_id: self.request_id.clone(),
            global_request_id: None,
            caller: self.operator.clone().map(|name| Caller {
                user: Some(name),
                ..Caller::default()
            }),
            whence: Whence::of(None, self.peer),
            asked: match said {
                Some(Detail(words)) => asked.detailed(words),
                None => asked,
            },
            outcome,
            status: status.map(|status| status.as_u16()),
            code: None,
            place: None,
            ms: self.begun.elapsed().as_micros() as f64 / 1000.0,
        }
    }

    fn is_action(&self) -> bool {
        !self.method.is_safe() || self.uri.path() == TAKES_ALL
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.told && self.is_action() {
            self.audit.put(self.record(Outcome::Unknown, None, None));
        }
    }
}

fn operator(request: &Request) -> Option<String> {
    match request.extensions().get() {
        None => request.extensions().get().and_then(Shown::owner),
        Some(Relayed { by, operator }) => Some(match operator {
            // What another node says comes last, so that it cannot pass for another name.
            Some(operator) => format!("node {by} for {operator}"),
            None => format!("node {by}"),
        }),
    }
}

/// Keeps the records of a router. What an operator changes is acknowledged as a write is; it is not refused when no
/// record can be kept, since what mends a node comes by this door.
pub(crate) async fn recorded(
    State(recording): State<Recording>,
    request: Request,
    next: Next,
) -> Response {
    if !recording.audit.is_on() {
        return next.run(request).await;
    }
    let route = request.extensions().get::<MatchedPath>();
    let mut waiting = Waiting {
        request_id: format!("req-{}", recording.ids.uuid().as_hyphenated()),
        audit: recording.audit,
        peer: request.extensions().get().copied(),
        operator: operator(&request),
        method: request.method().clone(),
        uri: request.uri().clone(),
        route: route.map(|route| route.as_str().to_owned()),
        begun: Instant::now(),
        told: false,
    };
    let response = next.run(request).await;
    waiting.told = true;
    let status = response.status();
    let outcome = match status {
        status if status.is_success() => Outcome::Committed,
        // What a leader was asked for may have come about.
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::INTERNAL_SERVER_ERROR => Outcome::Unknown,
        _ => Outcome::Refused,
    };
    let not_let_in = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
    if !waiting.is_action() && !not_let_in {
        return response;
    }
    let said = response.extensions().get();
    let record = waiting.record(outcome, Some(status), said);
    if waiting.audit.keep(record).await {
        return response;
    }
    let words = "it was done, but this node could not keep its record of it in time ([audit])";
    error(StatusCode::SERVICE_UNAVAILABLE, words).into_response()
}
