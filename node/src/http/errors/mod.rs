//! Every error the API answers. `refused` says what the model's refusals become, `frame` what
//! stands around a message, and `render` makes JSON, HTML and text of both.

mod frame;
mod refused;
mod render;

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;

use super::wire::microversion::BadVersion;
use crate::cluster::doors::Unavailable;

pub(super) use frame::Asked;
pub(super) use refused::{
    Doing, class_not_found, no_provider_to_delete, provider_without_name, refused, traits_not_found,
};
pub(super) use render::Format;

/// The codes that programs tell errors apart by.
pub(super) mod code {
    /// No code of its own.
    pub(crate) const UNDEFINED: &str = "placement.undefined_code";
    /// Something that would go is in use.
    pub(crate) const INVENTORY_IN_USE: &str = "placement.inventory.inuse";
    /// Somebody else was faster: read again, then try again.
    pub(crate) const CONCURRENT_UPDATE: &str = "placement.concurrent_update";
    /// The name or UUID is taken.
    pub(crate) const DUPLICATE_NAME: &str = "placement.duplicate_name";
    /// The provider has allocations.
    pub(crate) const PROVIDER_IN_USE: &str = "placement.resource_provider.inuse";
    /// The provider has children.
    pub(crate) const PROVIDER_HAS_CHILDREN: &str =
        "placement.resource_provider.cannot_delete_parent";
    /// No such provider.
    pub(crate) const PROVIDER_NOT_FOUND: &str = "placement.resource_provider.not_found";
    /// A query parameter that may come once came twice.
    pub(crate) const DUPLICATE_KEY: &str = "placement.query.duplicate_key";
    /// A query parameter has a wrong value.
    pub(crate) const BAD_VALUE: &str = "placement.query.bad_value";
    /// A query parameter is missing.
    pub(crate) const MISSING_VALUE: &str = "placement.query.missing_value";
    /// 503: nothing was committed, so trying again is safe. Given at every microversion.
    pub(crate) const NOTHING_COMMITTED: &str = "placement.unavailable.nothing_committed";
    /// 503: the write may or may not be committed. Given at every microversion.
    pub(crate) const OUTCOME_UNKNOWN: &str = "placement.unavailable.outcome_unknown";
    /// 503: the node asked cannot serve. Given at every microversion.
    pub(crate) const NOT_READY: &str = "placement.unavailable.not_ready";
    /// 412: the index token is of another history. Given at every microversion.
    pub(crate) const FOREIGN_INDEX: &str = "placement.consistency.foreign_index";
    /// 400: a consistency header cannot be understood. Given at every microversion.
    pub(crate) const BAD_CONSISTENCY: &str = "placement.consistency.bad_value";
    /// 413: the body is too long. Given at every microversion.
    pub(crate) const BODY_TOO_LARGE: &str = "placement.body_too_large";
    /// 503: a candidate search took too long or too much. Given at every microversion.
    pub(crate) const SEARCH_ENDED: &str = "placement.candidates.search_ended";
}

/// An answer that is not what the client wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiError {
    /// 4xx or 5xx.
    pub(super) status: StatusCode,
    /// What happened, what it means, what to do. A client sees it in a frame.
    pub(super) message: String,
    code: &'static str,
    /// Codes that no older client can trip over are given at every microversion.
    code_always: bool,
    /// Whether the response says that it varies with the microversion.
    pub(super) vary: bool,
    /// `allow`, of 405.
    pub(super) allow: Option<String>,
    /// `retry-after` in seconds, of 503.
    pub(super) retry_after_s: Option<u64>,
    /// Names the versions there are, of 406 by the microversion parser.
    versions: bool,
    /// 401 looks different from all others.
    unauthenticated: bool,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            code,
            code_always: false,
            vary: true,
            allow: None,
            retry_after_s: None,
            versions: false,
            unauthenticated: false,
        }
    }

    /// 400.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code::UNDEFINED, message)
    }

    /// 404 in the handler's own words.
    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code::UNDEFINED, message)
    }

    /// 409.
    pub(super) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// 404 of something that a path names and nobody has; does not say that it varies.
    pub(super) fn nothing_here(message: impl Into<String>) -> Self {
        Self {
            vary: false,
            ..Self::not_found(message)
        }
    }

    /// 404 of a path that is none, or not yet one at this version (which says that it varies).
    pub(super) fn no_such_path(too_old: bool) -> Self {
        Self {
            vary: too_old,
            ..Self::not_found("")
        }
    }

    /// 404 of a provider named in the path of a read.
    pub(super) fn provider_not_found(uuid: &str) -> Self {
        Self::not_found(format!("No resource provider with uuid {uuid} found"))
    }

    /// 401.
    pub(super) fn unauthenticated() -> Self {
        let message = "The request has no X-Auth-Token header. Send one.";
        Self {
            unauthenticated: true,
            vary: false,
            ..Self::new(StatusCode::UNAUTHORIZED, code::UNDEFINED, message)
        }
    }

    /// 403.
    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self {
            vary: false,
            ..Self::new(StatusCode::FORBIDDEN, code::UNDEFINED, message)
        }
    }

    /// 405. `allow` is what is possible instead.
    pub(super) fn method_not_allowed(allow: String) -> Self {
        Self {
            allow: Some(allow),
            ..Self::method_too_new("The method specified is not allowed for this resource.")
        }
    }

    /// 405 of a method that this microversion does not have.
    pub(super) fn method_too_new(message: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, code::UNDEFINED, message)
    }

    /// 406 because of `Accept`.
    pub(super) fn not_acceptable() -> Self {
        let message = "Only application/json is provided";
        Self::new(StatusCode::NOT_ACCEPTABLE, code::UNDEFINED, message)
    }

    /// 415.
    pub(super) fn unsupported_media_type(given: &str) -> Self {
        let message = format!("The media type {given} is not supported, use application/json");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code::UNDEFINED, message)
    }

    /// 400 of a body without a type.
    pub(super) fn content_type_required() -> Self {
        let message = "content-type header required when content-length > 0";
        Self {
            vary: false,
            ..Self::bad_request(message)
        }
    }

    /// 400 of a length that is no number.
    pub(super) fn content_length_not_integer() -> Self {
        Self {
            vary: false,
            ..Self::bad_request("content-length header must be an integer")
        }
    }

    /// 413.
    pub(super) fn body_too_large(limit_bytes: usize) -> Self {
        let message = format!(
            "The body is longer than the {limit_bytes} bytes that this service reads. Split the \
             request, or have [api] max_body_bytes raised."
        );
        Self {
            code_always: true,
            ..Self::new(StatusCode::PAYLOAD_TOO_LARGE, code::BODY_TOO_LARGE, message)
        }
    }

    /// 400 of a body that broke off.
    pub(super) fn body_unreadable() -> Self {
        Self::bad_request("The body could not be read to its end. Send it again.")
    }

    /// 400 of a microversion that is none, 406 of one that is not ours.
    pub(super) fn version(error: &BadVersion) -> Self {
        let (status, versions) = match error {
            BadVersion::Malformed(_) => (StatusCode::BAD_REQUEST, false),
            BadVersion::Unacceptable(_) => (StatusCode::NOT_ACCEPTABLE, true),
        };
        Self {
            versions,
            vary: false,
            ..Self::new(status, code::UNDEFINED, error.to_string())
        }
    }

    /// 400 of a consistency header.
    pub(super) fn bad_consistency(message: impl Into<String>) -> Self {
        Self {
            code_always: true,
            ..Self::new(StatusCode::BAD_REQUEST, code::BAD_CONSISTENCY, message)
        }
    }

    /// 503 of `/` on a node that is not ready.
    pub(super) fn not_ready(reason: &str) -> Self {
        let message = format!("This node is not ready: {reason}. Other nodes may be.");
        Self {
            code_always: true,
            retry_after_s: Some(1),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code::NOT_READY, message)
        }
    }

    /// 503 of a candidate search that was ended.
    pub(super) fn search_ended(message: impl Into<String>) -> Self {
        Self {
            code_always: true,
            retry_after_s: Some(1),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code::SEARCH_ENDED, message)
        }
    }

    /// 500 of a bug.
    pub(super) fn internal() -> Self {
        let message = "An unexpected error prevented the server from answering. It is in the \
                      server's log under this request id.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, code::UNDEFINED, message)
    }

    /// The same error with this code.
    pub(super) fn with_code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    /// Whether the microversion could not be told.
    pub(super) fn is_before_version(&self) -> bool {
        self.unauthenticated || self.versions
    }
}

/// Writes a value of ours as JSON.
pub(super) fn to_json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value)
        .expect("our own types have string keys and finite numbers")
        .into()
}

impl From<Unavailable> for ApiError {
    fn from(unavailable: Unavailable) -> Self {
        let message = unavailable.to_string();
        let busy = |code, message, retry_after: std::time::Duration| Self {
            code_always: true,
            // Whole seconds, rounded up: a client that comes too early waits twice.
            retry_after_s: Some(retry_after.as_millis().div_ceil(1000).max(1) as u64),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
        };
        match unavailable {
            Unavailable::NothingCommitted { retry_after, .. } => {
                let message = format!("{message}. It is safe to send the request again.");
                busy(code::NOTHING_COMMITTED, message, retry_after)
            }
            Unavailable::OutcomeUnknown { retry_after, .. } => {
                let message = format!(
                    "{message}. Read what you wanted to change before you send the request again."
                );
                busy(code::OUTCOME_UNKNOWN, message, retry_after)
            }
            Unavailable::ForeignIndex { .. } => Self {
                code_always: true,
                ..Self::new(
                    StatusCode::PRECONDITION_FAILED,
                    code::FOREIGN_INDEX,
                    format!("{message}. Forget the token and read without it."),
                )
            },
        }
    }
}
