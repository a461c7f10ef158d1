//! An error response: its status, its message, and the header that some statuses have.

use std::fmt::Display;

use http::StatusCode;
use http::header::{ALLOW, HeaderName, WWW_AUTHENTICATE};

use placement_model::types::Timestamp;
use placement_wire::claims::ClaimRefusal;

use super::code;
use placement_base::backend::{PlacementIndex, Unavailable};

/// An error that a client receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    /// Always a 4xx or 5xx status.
    pub(crate) status: StatusCode,
    /// The cause, the consequence and the remedy. `frame` adds the standard text around it.
    pub(crate) message: String,
    /// Whether the response has the microversion in `vary`.
    pub(crate) varies: Varies,
    /// The header of the status: `www-authenticate` of 401, `allow` of 405.
    pub(crate) header: Option<Box<(HeaderName, String)>>,
    /// The first and last supported microversion, if the requested one is not supported.
    pub(super) versions: Option<(&'static str, &'static str)>,
    /// The token and the time from which on changes are retained, if earlier changes are requested.
    pub(super) oldest: Option<Box<(String, Option<String>)>>,
    /// Details of a refused claim.
    pub(super) claim: Option<Box<ClaimRefusal>>,
    /// One of [`code::REFERENCE`] or [`code::OWN`].
    pub(crate) code: &'static str,
}

/// Whether a response has the microversion in `vary`.
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
            claim: None,
            code,
        }
    }

    /// 503; the client may retry. The response has no `Retry-After`: keystoneauth would wait for
    /// that time before each retry instead of doubling its pauses, so that services would give up
    /// early and retry all at once.
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

    pub(crate) fn with_code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    /// 400 without a code of its own.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code::UNDEFINED, message)
    }

    /// 409 without a code of its own.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code::UNDEFINED, message)
    }

    /// 401 without a challenge.
    pub(crate) fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, code::UNDEFINED, message).varying(Varies::No)
    }

    /// Adds the header that says where to get a token.
    pub(crate) fn challenge(self, www_authenticate_uri: &str) -> Self {
        let challenge = format!("Keystone uri=\"{www_authenticate_uri}\"");
        self.with_header(WWW_AUTHENTICATE, challenge)
    }

    /// 503: the caller cannot be authenticated now.
    pub(crate) fn cannot_authenticate() -> Self {
        let message = "Keystone does not answer, so the X-Auth-Token cannot be validated. \
                       Nothing was done; send the request again later.";
        Self::unavailable(code::CANNOT_AUTHENTICATE, message).varying(Varies::No)
    }

    /// 403 without a code of its own.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code::UNDEFINED, message).varying(Varies::No)
    }

    /// 405. `allow` lists the allowed methods.
    pub(crate) fn method_not_allowed(allow: String) -> Self {
        let error = Self::method_too_new("The method specified is not allowed for this resource.");
        error.with_header(ALLOW, allow)
    }

    /// 405 for a method that this microversion does not have.
    pub(crate) fn method_too_new(message: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, code::UNDEFINED, message)
    }

    /// 406 because of `Accept`.
    pub(crate) fn not_acceptable() -> Self {
        let message = "Only application/json is provided";
        Self::new(StatusCode::NOT_ACCEPTABLE, code::UNDEFINED, message)
    }

    /// 415 for any media type except JSON.
    pub(crate) fn unsupported_media_type(given: &str) -> Self {
        let message = format!("The media type {given} is not supported, use application/json");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code::UNDEFINED, message)
    }

    /// 410: the request needs changes before `oldest`, the point at time `at`.
    pub(crate) fn gone(
        code: &'static str,
        what: &str,
        oldest: PlacementIndex,
        at: Timestamp,
    ) -> Self {
        let (oldest, at) = (oldest.to_string(), at.rfc3339());
        let since = (at.as_ref()).map_or_else(String::new, |at| format!(" ({at})"));
        let message = format!("{what}: this node has only the changes after {oldest}{since}.");
        Self {
            oldest: Some(Box::new((oldest, at))),
            ..Self::new(StatusCode::GONE, code, message)
        }
    }

    /// 413 for a body over the limit.
    pub(crate) fn body_too_large(limit_bytes: usize) -> Self {
        let message = format!(
            "The body is longer than the {limit_bytes} bytes that this service reads. Split the \
             request."
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, code::BODY_TOO_LARGE, message)
    }

    /// 400 for a request with more than `limit` of `what`.
    pub(crate) fn over_limit(what: &str, limit: usize) -> Self {
        let message = format!("The request has more than {limit} {what}. Send less at once.");
        Self::new(StatusCode::BAD_REQUEST, code::LIMIT_EXCEEDED, message)
    }

    /// 414 for a URL over the limit.
    pub(crate) fn uri_too_long(limit_bytes: usize) -> Self {
        let message = format!(
            "The URL is longer than the {limit_bytes} bytes that this service reads. Ask for less at once."
        );
        Self::new(StatusCode::URI_TOO_LONG, code::LIMIT_EXCEEDED, message)
    }

    /// 408 for a body that exceeds a time limit.
    pub(crate) fn body_too_slow() -> Self {
        let message = "The body did not arrive in time. Send it within a minute, without pauses of ten seconds, \
                       and at 64 KiB/s or more.";
        Self::new(StatusCode::REQUEST_TIMEOUT, code::BODY_TOO_SLOW, message)
    }

    /// 406 for an unsupported microversion; `min` and `max` are supported.
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

    /// 400 for a malformed consistency header.
    pub(crate) fn bad_consistency(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code::BAD_CONSISTENCY, message)
    }

    /// 503 for `/` on a node that is not ready.
    pub(crate) fn not_ready(reason: &str) -> Self {
        let message = format!("This node is not ready: {reason}. Use another node.");
        Self::unavailable(code::NOT_READY, message)
    }

    /// 503: this node has no capacity for the request now. Nothing was done.
    pub(crate) fn busy(reason: &str) -> Self {
        let message = format!("{reason}. Send the request again, or to another node.");
        Self::unavailable(code::BUSY, message)
    }

    /// 429: a caller exceeds a limit. Nothing was done. The response has no `Retry-After`, as for
    /// [`ApiError::unavailable`].
    pub(crate) fn too_many_requests(reason: &str) -> Self {
        let message = format!(
            "{reason}. Nothing was done. Retry with pauses that grow each time, send fewer requests, \
             or have the limit raised."
        );
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self::new(status, code::TOO_MANY_REQUESTS, message).varying(Varies::No)
    }

    /// 503: no audit record can be stored. Nothing was done.
    pub(crate) fn cannot_record(why: &str) -> Self {
        let message = format!(
            "This node cannot keep an audit record of the write now: {why}. Nothing was \
             committed. It is safe to send the request again, or to another node."
        );
        Self::unavailable(code::NOTHING_COMMITTED, message)
    }

    /// 503: the answer to a read is withheld, as its audit record may be lost.
    pub(crate) fn read_not_recorded() -> Self {
        let message = "This node could not keep the audit record of this answer in time. \
                       It is safe to send the request again, or to another node.";
        Self::unavailable(code::NOTHING_COMMITTED, message)
    }

    /// 503: the write was carried out, but its audit record may be lost.
    pub(crate) fn not_recorded() -> Self {
        let message = "The write was carried out, but this node could not keep its audit record in time, so it \
                       is not acknowledged. Read what you wanted to change before you send the request again.";
        Self::unavailable(code::OUTCOME_UNKNOWN, message)
    }

    /// 400: a candidate search exceeded a limit; a retry would exceed it again.
    pub(crate) fn search_ended(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code::SEARCH_ENDED, message)
    }

    /// 500, which indicates a bug.
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
                let advice = format!("An operator creates it with {command}.");
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

/// Joins names as messages list them.
pub(crate) fn joined(names: &[impl Display]) -> String {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    names.join(", ")
}
