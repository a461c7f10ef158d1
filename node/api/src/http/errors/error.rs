//! An error that is answered: its status, its message, and the header of some statuses.

use std::fmt::Display;

use http::StatusCode;
use http::header::{ALLOW, HeaderName, WWW_AUTHENTICATE};

use placement_model::types::Timestamp;

use super::code;
use crate::backend::{PlacementIndex, Unavailable};

/// An error that a client is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    /// 4xx or 5xx.
    pub(crate) status: StatusCode,
    /// What happened, what it means, what to do. A client sees it in a frame.
    pub(crate) message: String,
    /// Whether the response says that it varies with the microversion.
    pub(crate) varies: Varies,
    /// The header that its status has: where a token is given, which methods are allowed.
    pub(crate) header: Option<Box<(HeaderName, String)>>,
    /// Of a microversion that is not served: the first and the last one that are.
    pub(super) versions: Option<(&'static str, &'static str)>,
    /// Of changes that are not kept any more: the token and the time from which on they are.
    pub(super) oldest: Option<Box<(String, Option<String>)>>,
    /// One of [`code::REFERENCE`] or [`code::OWN`].
    pub(crate) code: &'static str,
}

/// Whether a response says that it varies with the microversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Varies {
    Yes,
    No,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            varies: Varies::Yes,
            header: None,
            versions: None,
            oldest: None,
            code,
        }
    }

    /// 503, after which one may try again. No `Retry-After` says when: keystoneauth would wait for
    /// so long each time, in place of its pauses that double, so that services would give up early
    /// and come back all at once.
    pub(super) fn unavailable(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
    }

    fn with_header(self, name: HeaderName, value: String) -> Self {
        let header = Some(Box::new((name, value)));
        Self { header, ..self }
    }

    pub(crate) fn varying(self, varies: Varies) -> Self {
        Self { varies, ..self }
    }

    /// The same error with this code.
    pub(crate) fn with_code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    /// 400.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code::UNDEFINED, message)
    }

    /// 409.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code::UNDEFINED, message)
    }

    /// 401.
    pub(crate) fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, code::UNDEFINED, message).varying(Varies::No)
    }

    /// The same error, which says where Keystone gives tokens.
    pub(crate) fn challenge(self, www_authenticate_uri: &str) -> Self {
        let challenge = format!("Keystone uri=\"{www_authenticate_uri}\"");
        self.with_header(WWW_AUTHENTICATE, challenge)
    }

    /// 503: who is calling cannot be found out now.
    pub(crate) fn cannot_authenticate() -> Self {
        let message = "Keystone does not answer, so it cannot be found out whose the X-Auth-Token is. \
                       Nothing was done; send the request again later.";
        Self::unavailable(code::CANNOT_AUTHENTICATE, message).varying(Varies::No)
    }

    /// 403.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code::UNDEFINED, message).varying(Varies::No)
    }

    /// 405. `allow` is what is possible instead.
    pub(crate) fn method_not_allowed(allow: String) -> Self {
        let error = Self::method_too_new("The method specified is not allowed for this resource.");
        error.with_header(ALLOW, allow)
    }

    /// 405 of a method that this microversion does not have.
    pub(crate) fn method_too_new(message: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, code::UNDEFINED, message)
    }

    /// 406 because of `Accept`.
    pub(crate) fn not_acceptable() -> Self {
        let message = "Only application/json is provided";
        Self::new(StatusCode::NOT_ACCEPTABLE, code::UNDEFINED, message)
    }

    /// 415.
    pub(crate) fn unsupported_media_type(given: &str) -> Self {
        let message = format!("The media type {given} is not supported, use application/json");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code::UNDEFINED, message)
    }

    /// 410: what is asked for was before this place and time.
    pub(crate) fn gone(
        code: &'static str,
        what: &str,
        oldest: PlacementIndex,
        at: Timestamp,
    ) -> Self {
        let (oldest, at) = (oldest.to_string(), at.rfc3339());
        let since = (at.as_ref()).map_or_else(String::new, |at| format!(", of {at}"));
        let message = format!("{what}: this node keeps what was changed after {oldest}{since}.");
        Self {
            oldest: Some(Box::new((oldest, at))),
            ..Self::new(StatusCode::GONE, code, message)
        }
    }

    /// 413.
    pub(crate) fn body_too_large(limit_bytes: usize) -> Self {
        let message = format!(
            "The body is longer than the {limit_bytes} bytes that this service reads. Split the \
             request."
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, code::BODY_TOO_LARGE, message)
    }

    /// 400 of a request that carries more of something than one may.
    pub(crate) fn over_limit(what: &str, limit: usize) -> Self {
        let message = format!("The request has more than {limit} {what}. Send less at once.");
        Self::new(StatusCode::BAD_REQUEST, code::LIMIT_EXCEEDED, message)
    }

    /// 414.
    pub(crate) fn uri_too_long(limit_bytes: usize) -> Self {
        let message = format!(
            "The URL is longer than the {limit_bytes} bytes that this service reads. Ask for less at once."
        );
        Self::new(StatusCode::URI_TOO_LONG, code::LIMIT_EXCEEDED, message)
    }

    /// 408.
    pub(crate) fn body_too_slow() -> Self {
        let message = "The body did not come in time. Send it within a minute, without pauses of ten seconds, \
                       and at least 64 KiB a second.";
        Self::new(StatusCode::REQUEST_TIMEOUT, code::BODY_TOO_SLOW, message)
    }

    /// 406 of a microversion that is not served; `min` and `max` are.
    pub(crate) fn unacceptable_version(
        message: impl Into<String>,
        min: &'static str,
        max: &'static str,
    ) -> Self {
        Self {
            versions: Some((min, max)),
            varies: Varies::No,
            ..Self::new(StatusCode::NOT_ACCEPTABLE, code::UNDEFINED, message)
        }
    }

    /// 400 of a consistency header.
    pub(crate) fn bad_consistency(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code::BAD_CONSISTENCY, message)
    }

    /// 503 of `/` on a node that is not ready.
    pub(crate) fn not_ready(reason: &str) -> Self {
        let message = format!("This node is not ready: {reason}. Other nodes may be.");
        Self::unavailable(code::NOT_READY, message)
    }

    /// 503 of a request that this node has no room for now. Nothing was begun.
    pub(crate) fn busy(reason: &str) -> Self {
        let message = format!("{reason}. Send the request again, or to another node.");
        Self::unavailable(code::BUSY, message)
    }

    /// 429: a caller asks too much. Nothing was begun. Without `Retry-After`, as
    /// [`ApiError::unavailable`].
    pub(crate) fn too_many_requests(reason: &str) -> Self {
        let message = format!(
            "{reason}. Nothing was done. Send the request again after a pause that grows each time, and fewer \
             of them, or have the limit raised."
        );
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self::new(status, code::TOO_MANY_REQUESTS, message).varying(Varies::No)
    }

    /// 503: no audit record could be kept. Nothing was begun.
    pub(crate) fn cannot_record(why: &str) -> Self {
        let message = format!(
            "This node keeps a record of each write, and can keep none now: {why}. Nothing was \
             committed. It is safe to send the request again, or to another node."
        );
        Self::unavailable(code::NOTHING_COMMITTED, message)
    }

    /// 503: what was read is not handed out, as its audit record is not kept yet, and may be lost.
    pub(crate) fn read_not_recorded() -> Self {
        let message = "This node keeps a record of each answer with all that there is, and could not keep that of \
                       this one in time. It is safe to send the request again, or to another node.";
        Self::unavailable(code::NOTHING_COMMITTED, message)
    }

    /// 503: it was done, but its audit record is not kept yet, and may be lost.
    pub(crate) fn not_recorded() -> Self {
        let message = "The write was carried out, but this node could not keep its record of it in time, so it \
                       is not acknowledged. Read what you wanted to change before you send the request again.";
        Self::unavailable(code::OUTCOME_UNKNOWN, message)
    }

    /// 400 of a candidate search that was ended: sent again, it would be ended again.
    pub(crate) fn search_ended(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code::SEARCH_ENDED, message)
    }

    /// 500 of a bug.
    pub(crate) fn internal() -> Self {
        let message = "An unexpected error prevented the server from answering. It is in the \
                      server's log under this request id.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, code::UNDEFINED, message)
    }
}

impl From<Unavailable> for ApiError {
    fn from(unavailable: Unavailable) -> Self {
        const SAFE: &str = "It is safe to send the request again.";
        let what = unavailable.to_string();
        let unanswered = |code, advice: &str| Self::unavailable(code, format!("{what}. {advice}"));
        match unavailable {
            Unavailable::NothingCommitted(_) => unanswered(code::NOTHING_COMMITTED, SAFE),
            Unavailable::OutcomeUnknown(_) => {
                let advice = "Read what you wanted to change before you send the request again.";
                unanswered(code::OUTCOME_UNKNOWN, advice)
            }
            Unavailable::Busy(_) => unanswered(code::BUSY, SAFE),
            Unavailable::Rerouted => unanswered(code::MISDIRECTED, SAFE),
            Unavailable::NoPartition(name) => {
                let command = format!("`placementctl partitions create {name}`");
                let advice = format!("An operator makes it with {command}.");
                unanswered(code::NO_PARTITION, &advice)
            }
            Unavailable::NoSpace(_) => {
                let status = StatusCode::INSUFFICIENT_STORAGE;
                Self::new(status, code::NO_SPACE, format!("{what}."))
            }
            Unavailable::TooLarge { .. } => {
                let message = format!("{what}. Send less at once.");
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, code::LIMIT_EXCEEDED, message)
            }
            Unavailable::Past(_) => {
                let message = format!("{what}. Send writes to a node of the cluster.");
                Self::new(StatusCode::FORBIDDEN, code::READ_ONLY, message)
            }
            Unavailable::ForeignIndex(_) => {
                let message = format!("{what}. Forget the token and read without it.");
                Self::new(
                    StatusCode::PRECONDITION_FAILED,
                    code::FOREIGN_INDEX,
                    message,
                )
            }
        }
    }
}

/// Names as messages list them.
pub(crate) fn joined(names: &[impl Display]) -> String {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    names.join(", ")
}
