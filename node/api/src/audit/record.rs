//! What is recorded of a request, and its form in JSON.

use std::borrow::Cow;
use std::time::SystemTime;

use http::Method;
use serde::{Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::access::{self, ID_MAX_BYTES, Peer, URI_MAX_BYTES, WORD_MAX_BYTES, bounded};
use crate::backend::PlacementIndex;
use crate::identity::Identity;

/// Most roles that are recorded of a caller; under `noauth2` callers choose them.
const ROLES_MAX: usize = 32;
/// Longest note of what an operator asked for.
const DETAIL_MAX_BYTES: usize = 1024;

/// The listener that a request came in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Listener {
    /// The REST API.
    Api,
    /// The operators' socket or listener.
    Admin,
    /// The pages of `[web] listen`.
    Web,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was carried out. A write of the API is in the log, at `index`.
    Committed,
    /// It was answered as a success, and nothing had to be changed.
    Unchanged,
    /// It was refused, or could not be carried out. Nothing was changed.
    Refused,
    /// Its client went away, or this node stopped, before it was begun. Nothing was changed.
    Abandoned,
    /// It may have been carried out.
    Unknown,
}

/// Who asked.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Caller {
    /// The user's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What Keystone calls the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    /// The domain of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_domain: Option<String>,
    /// The project's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// What Keystone calls the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_name: Option<String>,
    /// The domain of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_domain: Option<String>,
    /// The domain that the token is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// `all` if the token is for the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_scope: Option<String>,
    /// Roles, at most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// The service that came with the user's token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_user: Option<String>,
}

impl From<&Identity> for Caller {
    /// No more roles than are recorded, and nothing that may be a token.
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

/// Where a request came from.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Origin {
    /// The client's address: that of the connection, or the one that a trusted proxy names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<String>,
    /// The address of the connection, where a proxy names another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<String>,
}

impl Origin {
    /// `named` is the client's address in the words of a trusted proxy.
    pub fn of(named: Option<&str>, peer: Option<Peer>) -> Self {
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

/// What was asked for.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Asked {
    /// The method, bounded.
    pub method: String,
    /// The path with its query.
    pub uri: String,
    /// The path with names in place of what varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The partition, unless it is the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The policy rule that guards it, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<&'static str>,
    /// The microversion, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microversion: Option<&'static str>,
    /// The providers and consumers that it names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// What an operator's request says in its body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Asked {
    /// A request with this method and URI, both bounded.
    pub fn new(method: &Method, uri: &http::Uri) -> Self {
        let uri = (uri.path_and_query()).map_or_else(|| uri.path(), |uri| uri.as_str());
        Self {
            method: bounded(method.as_str(), WORD_MAX_BYTES).into_owned(),
            uri: bounded(uri, URI_MAX_BYTES).into_owned(),
            ..Self::default()
        }
    }

    /// The same with a note of what an operator asked for.
    pub fn detailed(mut self, detail: &str) -> Self {
        self.detail = Some(bounded(detail, DETAIL_MAX_BYTES).into_owned());
        self
    }
}

/// One request and what became of it.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename = "audit")]
pub struct Record {
    /// When it ended.
    #[serde(serialize_with = "rfc3339")]
    pub time: SystemTime,
    /// The node that was asked.
    pub node: u64,
    /// Where the request came in.
    pub listener: Listener,
    /// `req-` and a UUID.
    pub request_id: String,
    /// The caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_request_id: Option<String>,
    /// `None`: it is not known who it was.
    #[serde(flatten)]
    pub caller: Option<Caller>,
    /// Who sent it.
    #[serde(flatten)]
    pub origin: Origin,
    /// What was asked for.
    #[serde(flatten)]
    pub asked: Asked,
    /// What became of it.
    pub outcome: Outcome,
    /// `None`: it was not answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The code of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// Where a write is in the log.
    #[serde(flatten)]
    pub place: Option<PlacementIndex>,
    /// The term of its entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// How long it took, in milliseconds.
    pub ms: f64,
}

impl Record {
    /// Adds its line in JSON, with the newline.
    pub(super) fn write_json(&self, into: &mut Vec<u8>) {
        serde_json::to_writer(&mut *into, self).expect("texts and numbers can be written");
        into.push(b'\n');
    }
}

/// In UTC; the beginning of 1970 for what no calendar has.
fn rfc3339<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let text = OffsetDateTime::from(*time).format(&Rfc3339);
    serializer.serialize_str(text.as_deref().unwrap_or("1970-01-01T00:00:00Z"))
}

/// An id of a user, a project or a domain, or the name of a role. What is longer than Keystone's
/// may be a token that a client sent to a node with `noauth2`: it is left out.
fn short(text: &str) -> Option<String> {
    (text.len() <= ID_MAX_BYTES).then(|| text.to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::identity::CallingService;

    /// A claim that Nova has made for a user.
    pub(in crate::audit) fn claim() -> Record {
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
            origin: Origin::of(Some("10.0.0.7"), Some(Peer("192.0.2.1:5".parse().unwrap()))),
            asked: Asked {
                route: Some("/allocations/{consumer_uuid}".to_owned()),
                operation: Some("placement:allocations:update"),
                microversion: Some("1.39"),
                resources: vec!["c1".to_owned()],
                ..Asked::new(&Method::PUT, &uri)
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

    /// What no one may do who is not known.
    pub(in crate::audit) fn unauthenticated() -> Record {
        Record {
            caller: None,
            global_request_id: None,
            origin: Origin::of(None, Some(Peer("192.0.2.9:5".parse().unwrap()))),
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
            Asked::new(&Method::PUT, &uri.parse().unwrap()).detailed(&"\n".repeat(9_000));
        record.caller = Some(Caller::from(&Identity {
            roles: (0..5_000).map(|role| format!("r{role}")).collect(),
            ..Identity::default()
        }));
        record.origin = Origin::of(Some(&"\"\u{1}\n".repeat(9_000)), None);
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
