//! Audit records of requests and their JSON form.

use std::borrow::Cow;
use std::time::SystemTime;

use http::Method;
use serde::{Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::access::{self, ID_MAX_BYTES, Peer, URI_MAX_BYTES, WORD_MAX_BYTES, bounded};
use crate::identity::Identity;
use placement_base::backend::PlacementIndex;

/// Maximum number of recorded roles; under `noauth2` the caller chooses them.
const ROLES_MAX: usize = 32;
/// Maximum length of the note on an operator's request.
const DETAIL_MAX_BYTES: usize = 1024;

/// The listener that received a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Listener {
    /// The REST API listener.
    Api,
    /// The operators' Unix socket or listener.
    Admin,
    /// The web console of `[web] listen`.
    Web,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The request was carried out. A write through the API is in the log, at `index`.
    Committed,
    /// It succeeded without a change of the state.
    Unchanged,
    /// It was rejected or failed, and changed nothing.
    Refused,
    /// The client disconnected, or this node stopped, before the request changed anything.
    Abandoned,
    /// It may have been carried out.
    Unknown,
}

/// The caller of a request.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Caller {
    /// Id of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Keystone's name of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    /// Id of the user's domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_domain: Option<String>,
    /// Id of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Keystone's name of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_name: Option<String>,
    /// Id of the project's domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_domain: Option<String>,
    /// Id of the domain that the token is scoped to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// `all` if the token is scoped to the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_scope: Option<String>,
    /// Role names, at most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Id of the service user that sent the user's token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_user: Option<String>,
}

impl From<&Identity> for Caller {
    /// Limits the number of roles, and omits values that may be tokens.
    fn from(identity: &Identity) -> Self {
        let short_or_none = |text: &Option<String>| text.as_deref().and_then(short);
        let name = |text: &Option<String>| access::name(text).map(Cow::into_owned);
        let roles = identity.roles.iter().take(ROLES_MAX);
        Self {
            user: short(&identity.user_id),
            user_name: name(&identity.user_name),
            user_domain: short_or_none(&identity.user_domain_id),
            project: short_or_none(&identity.project_id),
            project_name: name(&identity.project_name),
            project_domain: short_or_none(&identity.project_domain_id),
            domain: short_or_none(&identity.domain_id),
            system_scope: short_or_none(&identity.system_scope),
            roles: roles.filter_map(|role| short(role)).collect(),
            service_user: short_or_none(&identity.service.user_id),
        }
    }
}

/// Network origin of a request.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Origin {
    /// The client address: of the connection, or according to a trusted proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<String>,
    /// The peer address of the connection, if a proxy named another client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<String>,
}

impl Origin {
    /// `named` is the client address according to a trusted proxy.
    pub fn new(named: Option<&str>, peer: Option<Peer>) -> Self {
        let peer = peer.map(|Peer(address)| address.ip().to_string());
        match named {
            Some(named) => Self {
                client: Some(bounded(named, WORD_MAX_BYTES).into_owned()),
                peer,
            },
            None => Self {
                client: peer,
                peer: None,
            },
        }
    }
}

/// Target of a request.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RequestTarget {
    /// HTTP method, bounded in length.
    pub method: String,
    /// Path with query, bounded in length.
    pub uri: String,
    /// Path template, with names in place of the variable parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Partition, unless it is the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// Policy rule that guards the request, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<&'static str>,
    /// Microversion, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microversion: Option<&'static str>,
    /// UUIDs of the providers and consumers in the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Summary of the body of an operator's request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl RequestTarget {
    /// A request with this method and URI, both bounded in length.
    pub fn new(method: &Method, uri: &http::Uri) -> Self {
        let uri = (uri.path_and_query()).map_or_else(|| uri.path(), |uri| uri.as_str());
        Self {
            method: bounded(method.as_str(), WORD_MAX_BYTES).into_owned(),
            uri: bounded(uri, URI_MAX_BYTES).into_owned(),
            ..Self::default()
        }
    }

    /// Adds a note on an operator's request.
    pub fn detailed(mut self, detail: &str) -> Self {
        self.detail = Some(bounded(detail, DETAIL_MAX_BYTES).into_owned());
        self
    }
}

/// A request and its outcome.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename = "audit")]
pub struct Record {
    /// Time at which it ended.
    #[serde(serialize_with = "rfc3339")]
    pub time: SystemTime,
    /// Id of the node that received it.
    pub node: u64,
    /// Listener that received it.
    pub listener: Listener,
    /// Request id: `req-` and a UUID.
    pub request_id: String,
    /// Request id that the caller sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_request_id: Option<String>,
    /// `None` if the caller is not authenticated.
    #[serde(flatten)]
    pub caller: Option<Caller>,
    /// Network origin of the request.
    #[serde(flatten)]
    pub origin: Origin,
    /// Target and content of the request.
    #[serde(flatten)]
    pub asked: RequestTarget,
    /// Outcome of the request.
    pub outcome: Outcome,
    /// HTTP status; `None` if it was not answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Error code of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// Log position of a write.
    #[serde(flatten)]
    pub place: Option<PlacementIndex>,
    /// Term of its entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// Duration of the request in milliseconds.
    pub ms: f64,
}

impl Record {
    /// Appends the record as a line of JSON.
    pub(super) fn write_json(&self, into: &mut Vec<u8>) {
        serde_json::to_writer(&mut *into, self).expect("texts and numbers are valid JSON values");
        into.push(b'\n');
    }
}

/// Formats in UTC; times outside the calendar become the beginning of 1970.
fn rfc3339<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let text = OffsetDateTime::from(*time).format(&Rfc3339);
    serializer.serialize_str(text.as_deref().unwrap_or("1970-01-01T00:00:00Z"))
}

/// An id of a user, a project or a domain, or a role name. Longer values than Keystone's may be
/// tokens that a client sent to a node with `noauth2`, and are omitted.
fn short(text: &str) -> Option<String> {
    (text.len() <= ID_MAX_BYTES).then(|| text.to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::identity::CallingService;

    /// A claim that Nova made for a user.
    pub(crate) fn claim() -> Record {
        let caller = Identity {
            user_id: "alice".to_owned(),
            project_id: Some("blue".to_owned()),
            user_domain_id: Some("default".to_owned()),
            roles: vec!["member".to_owned(), "reader".to_owned()],
            service: CallingService {
                user_id: Some("nova".to_owned()),
                ..CallingService::default()
            },
            ..Identity::default()
        };
        let uri = "/allocations/c1?x=1".parse().unwrap();
        Record {
            time: SystemTime::UNIX_EPOCH + Duration::from_micros(1_767_225_600_250_000),
            node: 2,
            listener: Listener::Api,
            request_id: "req-5b1f5d06-6b1c-4b84-9d93-0a8a2b9ff0b1".to_owned(),
            global_request_id: Some("req-8a1f5d06-6b1c-4b84-9d93-0a8a2b9ff0b1".to_owned()),
            caller: Some(Caller::from(&caller)),
            origin: Origin::new(Some("10.0.0.7"), Some(Peer("192.0.2.1:5".parse().unwrap()))),
            asked: RequestTarget {
                route: Some("/allocations/{consumer_uuid}".to_owned()),
                operation: Some("placement:allocations:update"),
                microversion: Some("1.39"),
                resources: vec!["c1".to_owned()],
                ..RequestTarget::new(&Method::PUT, &uri)
            },
            outcome: Outcome::Committed,
            status: Some(204),
            code: None,
            place: Some(PlacementIndex {
                epoch: 3,
                index: 41,
            }),
            term: Some(7),
            ms: 1.5,
        }
    }

    /// A request without authentication that needs it.
    pub(crate) fn unauthenticated() -> Record {
        Record {
            caller: None,
            global_request_id: None,
            origin: Origin::new(None, Some(Peer("192.0.2.9:5".parse().unwrap()))),
            outcome: Outcome::Refused,
            status: Some(401),
            code: Some("placement.undefined_code"),
            place: None,
            term: None,
            ..claim()
        }
    }

    fn line(record: &Record) -> Value {
        let mut line = Vec::new();
        record.write_json(&mut line);
        assert_eq!(line.pop(), Some(b'\n'));
        assert!(!line.contains(&b'\n'));
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn record_has_caller_request_and_outcome() {
        let expected = json!({
            "kind": "audit",
            "time": "2026-01-01T00:00:00.25Z",
            "node": 2,
            "listener": "api",
            "request_id": "req-5b1f5d06-6b1c-4b84-9d93-0a8a2b9ff0b1",
            "global_request_id": "req-8a1f5d06-6b1c-4b84-9d93-0a8a2b9ff0b1",
            "user": "alice",
            "user_domain": "default",
            "project": "blue",
            "roles": ["member", "reader"],
            "service_user": "nova",
            "client": "10.0.0.7",
            "peer": "192.0.2.1",
            "method": "PUT",
            "uri": "/allocations/c1?x=1",
            "route": "/allocations/{consumer_uuid}",
            "operation": "placement:allocations:update",
            "microversion": "1.39",
            "resources": ["c1"],
            "outcome": "committed",
            "status": 204,
            "epoch": 3,
            "index": 41,
            "term": 7,
            "ms": 1.5,
        });
        assert_eq!(line(&claim()), expected);
    }

    #[test]
    fn unknown_fields_are_left_out() {
        let line = line(&unauthenticated());
        assert_eq!(
            (&line["status"], &line["client"]),
            (&json!(401), &json!("192.0.2.9"))
        );
        for absent in [
            "user",
            "roles",
            "peer",
            "global_request_id",
            "index",
            "term",
        ] {
            assert!(line.get(absent).is_none(), "{absent} in {line}");
        }
    }

    #[test]
    fn client_text_makes_one_line_of_bounded_length() {
        let mut record = claim();
        let uri = format!("/{}", "x".repeat(60_000));
        record.asked =
            RequestTarget::new(&Method::PUT, &uri.parse().unwrap()).detailed(&"\n".repeat(9_000));
        record.caller = Some(Caller::from(&Identity {
            roles: (0..5_000).map(|role| format!("r{role}")).collect(),
            ..Identity::default()
        }));
        record.origin = Origin::new(Some(&"\"\u{1}\n".repeat(9_000)), None);
        let mut text = Vec::new();
        record.write_json(&mut text);
        assert!(text.len() < 8 * 1024, "{}", text.len());
        line(&record);
    }

    #[test]
    fn possible_token_is_not_recorded_as_user() {
        assert_eq!(short(&"x".repeat(65)), None);
        assert_eq!(short(&"x".repeat(64)).unwrap().len(), 64);
    }
}
