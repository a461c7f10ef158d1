//! The facts known about a request in progress. The response has them even if the request fails,
//! and the audit record even if the client has disconnected.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use axum::body::{Body, HttpBody};
use http::StatusCode;
use http::request::Parts;
use indexmap::IndexSet;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::callers::Counted;
use super::request_context::Notes;
use super::route::is_own;
use super::searches::{AnsweredSearch, SearchOutcome};
use super::state::Api;
use super::{budget, headers};
use crate::http::errors::ApiError;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::spelling;
use placement_audit::access::{self, ID_MAX_BYTES, Line, Peer, URI_MAX_BYTES, bounded};
use placement_audit::identity::Identity;
use placement_audit::{Caller, Listener, Origin, Outcome, Record, RequestTarget};
use placement_base::world::micros;

/// A request in progress.
pub(super) struct Progress<'a> {
    api: &'a Api,
    pub(super) parts: &'a Parts,
    pub(super) peer: Option<Peer>,
    /// The client's address as a trusted proxy reports it.
    pub(super) client: Option<String>,
    pub(super) request_id: String,
    pub(super) global_request_id: Option<String>,
    pub(super) version: Option<Microversion>,
    /// The listener that accepted it.
    pub(super) listener: Listener,
    pub(super) identity: Option<Identity>,
    pub(super) route: Option<&'static str>,
    /// The policy rule of the operation.
    pub(super) operation: Option<&'static str>,
    /// The values of the path's parameters.
    pub(super) params: Vec<String>,
    /// The code of the error, if it fails.
    pub(super) code: Option<&'static str>,
    /// The caller whose share of memory it uses.
    pub(super) caller: budget::Caller,
    /// Counts the request towards the limits of its caller. It moves to the body of the answer and
    /// is dropped when the client has received that.
    pub(super) counted: Counted,
    /// Whether the body was not read to its end. Then the connection cannot be used for another
    /// request.
    pub(super) body_unread: bool,
    pub(super) notes: Arc<Mutex<Notes>>,
    begun: Instant,
    recorded: bool,
}

impl<'a> Progress<'a> {
    pub(super) fn new(api: &'a Api, parts: &'a Parts, peer: Option<Peer>, body: &Body) -> Self {
        Self {
            api,
            parts,
            peer,
            client: api.settings.public.client(&parts.headers),
            request_id: format!("req-{}", api.ids.uuid().as_hyphenated()),
            global_request_id: headers::callers_request_id(&parts.headers),
            version: None,
            listener: Listener::Api,
            identity: None,
            route: None,
            operation: None,
            params: Vec::new(),
            code: None,
            caller: budget::Caller::default(),
            counted: Counted::default(),
            body_unread: !body.is_end_stream(),
            notes: Arc::default(),
            begun: Instant::now(),
            recorded: false,
        }
    }

    /// The id under which the request's write is logged: the caller's id or, without one, the id of
    /// this request.
    pub(super) fn traced_by(&self) -> &String {
        self.global_request_id.as_ref().unwrap_or(&self.request_id)
    }

    /// The line of the access log for this request.
    pub(super) fn line(&self) -> Line {
        let mut line = Line::begin(self.parts, self.peer, self.client.as_deref());
        line.request_id = Some(self.request_id.clone());
        line.global_request_id = self.global_request_id.clone();
        line
    }

    /// Writes the audit record of the request, if it needs one. If the record cannot be stored, the
    /// returned error replaces the answer.
    pub(super) async fn keep(&mut self, status: StatusCode) -> Result<(), ApiError> {
        let Some(record) = self.answered(status) else {
            return Ok(());
        };
        let kept = Box::pin(self.api.audit.keep(record)).await;
        if kept {
            Ok(())
        } else if self.is_write() {
            Err(ApiError::not_recorded())
        } else {
            Err(ApiError::read_not_recorded())
        }
    }

    /// Like [`Progress::keep`], but does not wait until the record is stored: for a request refused
    /// before authentication.
    pub(super) fn put(&mut self, status: StatusCode) {
        if let Some(record) = self.answered(status) {
            self.api.audit.put(record);
        }
    }

    fn answered(&mut self, status: StatusCode) -> Option<Record> {
        self.recorded = true;
        // The web interface writes a record of its own for a refused page.
        let is_page = self.listener == Listener::Web;
        let is_recorded =
            self.is_write() || is_refusal(status) && !is_page || self.notes.lock().is_bulk;
        (self.api.audit.is_on() && is_recorded).then(|| self.record(Some(status)))
    }

    /// Whether the request may change the state. Most of the service's own routes change only
    /// copies of it.
    pub(super) fn is_write(&self) -> bool {
        let is_own_write = || self.operation.is_some_and(placement_policy::is_own_write);
        !self.parts.method.is_safe() && (!self.route.is_some_and(is_own) || is_own_write())
    }

    fn record(&self, status: Option<StatusCode>) -> Record {
        let notes = self.notes.lock().clone();
        let (place, term) = notes.position.unzip();
        let outcome = notes.written.unwrap_or(match status {
            Some(status) if status.is_success() => Outcome::Unchanged,
            Some(_) => Outcome::Refused,
            None => Outcome::Abandoned,
        });
        Record {
            time: self.api.audit.now(),
            node: self.api.audit.node(),
            listener: self.listener,
            request_id: self.request_id.clone(),
            global_request_id: self.global_request_id.clone(),
            caller: self.identity.as_ref().map(Caller::from),
            origin: Origin::new(self.client.as_deref(), self.peer),
            asked: RequestTarget {
                route: self.route.map(str::to_owned),
                operation: self.operation,
                microversion: self.version.map(Microversion::text),
                resources: self.resources(notes.named),
                partition: self.api.settings.partition.clone(),
                ..RequestTarget::new(&self.parts.method, &self.parts.uri)
            },
            outcome,
            status: status.map(|status| status.as_u16()),
            code: self.code,
            place,
            term,
            ms: self.ms(),
        }
    }

    /// The record of this request's search, for the list of latest searches.
    pub(super) fn searched(&self, searched: &SearchOutcome) -> AnsweredSearch {
        let id = |id: &String| (id.len() <= ID_MAX_BYTES).then(|| id.clone());
        let name = |name: &Option<String>| access::name(name).map(Cow::into_owned);
        let caller = self.identity.as_ref();
        let query = match &searched.claim {
            Some(claim) => claim.query.as_str(),
            None => self.parts.uri.query().unwrap_or_default(),
        };
        let noted = self.notes.lock().state;
        let index = noted.and_then(|noted| noted.position().index);
        AnsweredSearch {
            at: micros(self.api.clock.now()),
            request_id: self.request_id.clone(),
            global_request_id: self.global_request_id.clone(),
            user_id: caller.and_then(|caller| id(&caller.user_id)),
            user_name: caller.and_then(|caller| name(&caller.user_name)),
            project_id: caller.and_then(|caller| id(caller.project_id.as_ref()?)),
            project_name: caller.and_then(|caller| name(&caller.project_name)),
            query: bounded(query, URI_MAX_BYTES).into_owned(),
            microversion: self.version.map(Microversion::text),
            index: index.map(|index| index.to_string()),
            ms: self.ms(),
            candidates: searched.candidates,
            limited: searched.limited,
            claim: searched.claim.clone(),
            reason: OnceLock::new(),
            explanation: Mutex::default(),
        }
    }

    /// Time since the request arrived, in milliseconds.
    pub(super) fn ms(&self) -> f64 {
        self.begun.elapsed().as_micros() as f64 / 1000.0
    }

    /// The UUIDs in the path, and the providers and consumers that the write names.
    fn resources(&self, named: Vec<String>) -> Vec<String> {
        let in_path = (self.params.iter()).filter(|text| spelling::is_hyphenated_uuid(text));
        let resources: IndexSet<String> = in_path.cloned().chain(named).collect();
        resources.into_iter().collect()
    }
}

impl Drop for Progress<'_> {
    /// Writes an audit record if the client of a write has disconnected. The write may still be
    /// committed.
    fn drop(&mut self) {
        if !self.recorded && self.api.audit.is_on() && self.is_write() {
            let record = self.record(None);
            self.api.audit.put(record);
        }
    }
}

/// Whether the status refuses access. Then reads get an audit record, too.
fn is_refusal(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
    )
}
