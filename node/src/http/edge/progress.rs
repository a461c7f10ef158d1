//! What is known of a request so far. Its response shows it even if the request failed, and its audit record
//! even if nobody waits for a response any more.

use std::sync::Arc;

use http::StatusCode;
use http::request::Parts;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::auth::Identity;
use super::request_context::Notes;
use crate::access::Peer;
use crate::audit::{Asked, Audit, Caller, Door, Fate, Outcome, Record, Whence, short};
use crate::http::errors::ApiError;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::spelling;

/// A request that is being answered.
pub(super) struct Progress<'a> {
    pub(super) asked: Request<'a>,
    pub(super) version: Option<Microversion>,
    pub(super) identity: Option<Identity>,
    pub(super) route: Option<&'static str>,
    /// The policy rule of what is asked.
    pub(super) operation: Option<&'static str>,
    /// What the names in the path stand for.
    pub(super) params: Vec<String>,
    /// The code of the error that it ends with.
    pub(super) code: Option<&'static str>,
    /// The body was not read to its end: there is no telling where the next request begins.
    pub(super) body_unread: bool,
    pub(super) notes: Arc<Mutex<Notes>>,
    audit: &'a Audit,
    begun: Instant,
    recorded: bool,
}

/// What a request says of itself.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) parts: &'a Parts,
    pub(super) peer: Option<Peer>,
    /// The client's address in the words of a trusted proxy.
    pub(super) client: Option<&'a str>,
    pub(super) request_id: &'a str,
    pub(super) global_request_id: Option<&'a str>,
    /// The partition, unless it is the default one.
    pub(super) partition: Option<&'a str>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(asked: Request<'a>, audit: &'a Audit, body_unread: bool) -> Self {
        let notes = Notes {
            names: audit.is_on(),
            ..Notes::default()
        };
        Self {
            asked,
            version: None,
            identity: None,
            route: None,
            operation: None,
            params: Vec::new(),
            code: None,
            body_unread,
            notes: Arc::new(Mutex::new(notes)),
            audit,
            begun: Instant::now(),
            recorded: false,
        }
    }

    /// Keeps the record of the request, if it is one of which there are records. An error if the answer may not be
    /// given, as the record could not be kept.
    pub(super) async fn keep(&mut self, status: StatusCode) -> Result<(), ApiError> {
        let Some(record) = self.answered(status) else {
            return Ok(());
        };
        match self.audit.keep(record).await {
            true => Ok(()),
            false => Err(ApiError::not_recorded()),
        }
    }

    /// The same for what was refused unseen.
    pub(super) fn put(&mut self, status: StatusCode) {
        if let Some(record) = self.answered(status) {
            self.audit.put(record);
        }
    }

    fn answered(&mut self, status: StatusCode) -> Option<Record> {
        self.recorded = true;
        let is_told = self.is_write() || is_refusal(status);
        (self.audit.is_on() && is_told).then(|| self.record(Some(status)))
    }

    fn is_write(&self) -> bool {
        !self.asked.parts.method.is_safe()
    }

    fn record(&self, status: Option<StatusCode>) -> Record {
        let (fate, named) = {
            let mut notes = self.notes.lock();
            (notes.fate, std::mem::take(&mut notes.named))
        };
        let outcome = match (fate, status) {
            (Fate::Committed(_), _) => Outcome::Committed,
            (Fate::Refused(_), _) => Outcome::Refused,
            (Fate::Unknown, _) => Outcome::Unknown,
            (Fate::NotBegun, Some(status)) if status.is_success() => Outcome::Unchanged,
            (Fate::NotBegun, Some(_)) => Outcome::Refused,
            (Fate::NotBegun, None) => Outcome::Abandoned,
        };
        let asked = &self.asked;
        Record {
            time: self.audit.now(),
            node: self.audit.node(),
            door: Door::Api,
            request_id: asked.request_id.to_owned(),
            global_request_id: asked.global_request_id.map(str::to_owned),
            caller: self.identity.as_ref().map(caller),
            whence: Whence::of(asked.client, asked.peer),
            asked: Asked {
                route: self.route.map(str::to_owned),
                operation: self.operation,
                microversion: self.version.map(Microversion::text),
                resources: self.resources(named),
                partition: asked.partition.map(str::to_owned),
                ..Asked::new(&asked.parts.method, &asked.parts.uri)
            },
            outcome,
            status: status.map(|status| status.as_u16()),
            code: self.code,
            place: match fate {
                Fate::Committed(place) | Fate::Refused(place) => Some(place),
                Fate::NotBegun | Fate::Unknown => None,
            },
            ms: self.begun.elapsed().as_micros() as f64 / 1000.0,
        }
    }

    /// The UUIDs in the path, and those that its body names.
    fn resources(&self, named: Vec<String>) -> Vec<String> {
        let is_uuid = |text: &&String| spelling::is_hyphenated_uuid(text);
        let mut resources: Vec<String> = self.params.iter().filter(is_uuid).cloned().collect();
        for one in named {
            if !resources.contains(&one) {
                resources.push(one);
            }
        }
        resources
    }
}

impl Drop for Progress<'_> {
    /// Nobody waits for the answer any more. The write may be carried out all the same.
    fn drop(&mut self) {
        if !self.recorded && self.audit.is_on() && self.is_write() {
            let record = self.record(None);
            self.audit.put(record);
        }
    }
}

/// Reads leave a record where somebody was not let in.
fn is_refusal(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
    )
}

fn caller(identity: &Identity) -> Caller {
    let known = |text: &Option<String>| text.as_deref().and_then(short);
    let caller = Caller {
        user: short(&identity.user_id),
        user_domain: known(&identity.user_domain_id),
        project: known(&identity.project_id),
        project_domain: known(&identity.project_domain_id),
        domain: known(&identity.domain_id),
        system_scope: known(&identity.system_scope),
        service_user: known(&identity.service.user_id),
        roles: Vec::new(),
    };
    caller.with_roles(&identity.roles)
}
