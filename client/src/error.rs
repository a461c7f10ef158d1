//! Errors of the client.

use http::StatusCode;
use placement_wire::claims::ClaimRefusal;
use placement_wire::upstream::{ErrorDetail, Errors};

use crate::connect_error::Obstacle;

/// Error of a request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The service refused the request (4xx) or failed (5xx).
    #[error(transparent)]
    Refused(Box<ApiError>),
    /// The write provably never entered the log, and the time limit for attempts is exceeded. The
    /// write is safe to repeat.
    #[error("{}", ended(reason, "nothing was committed"))]
    NothingCommitted {
        /// The last answer or failure of each node.
        reason: String,
    },
    /// The write may or may not be committed. Read the state before you repeat it.
    #[error("{}", ended(.0, "the outcome of the write is unknown"))]
    OutcomeUnknown(String),
    /// No node answered a read with a result in time, but at least one answered that it cannot
    /// serve the read now (503, 429). Contains the last answer or failure of each node.
    #[error("{0}")]
    Unavailable(String),
    /// No node answered a read, or no node accepted a connection for a write, in time. Nothing was
    /// written.
    #[error("no node answered: {reason}")]
    Unreachable {
        /// The last failure of each node.
        reason: String,
        /// Reasons that do not pass by themselves, for advice to the user. If each endpoint has
        /// one, the client gives up at once.
        obstacles: Vec<Obstacle>,
    },
    /// The function of [`Client::with_tokens`](crate::Client::with_tokens) failed. Nothing was
    /// written.
    #[error("there is no token: {0}")]
    NoToken(Box<dyn std::error::Error + Send + Sync>),
    /// The response does not have the format of the API.
    #[error("the response to {what} cannot be parsed: {reason}")]
    Malformed {
        /// Method and path of the request.
        what: String,
        /// Error message of the parser.
        reason: String,
    },
    /// An endpoint that cannot be parsed.
    #[error("`{endpoint}` is not an endpoint: {reason}")]
    BadEndpoint {
        /// The endpoint as given.
        endpoint: String,
        /// Why it is invalid.
        reason: String,
    },
    /// A request that cannot be expressed in HTTP, such as one with an invalid header.
    #[error("the request cannot be sent: {0}")]
    BadRequest(String),
}

/// The reason, followed by its consequence unless the reason already contains it.
fn ended(reason: &str, end: &str) -> String {
    if reason.contains(end) {
        reason.to_owned()
    } else {
        format!("{reason}; {end}")
    }
}

impl Error {
    /// A connection that broke off.
    pub(crate) fn lost(reason: String) -> Self {
        let obstacles = Vec::new();
        Self::Unreachable { reason, obstacles }
    }

    /// The HTTP status if the service refused the request.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Refused(error) => Some(error.status),
            _ => None,
        }
    }

    /// Whether the service answered 409: a concurrent update, or not enough room.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(StatusCode::CONFLICT)
    }
}

/// An error body in the format of the API.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{status}: {}{}", self.message(), request_id.as_ref().map(|id| format!(" (request {id})")).unwrap_or_default())]
pub struct ApiError {
    /// HTTP status of the response.
    pub status: StatusCode,
    /// Error code (from microversion 1.23), such as `placement.concurrent_update`.
    pub code: Option<String>,
    /// Readable text: the standard sentence of the status, and the message on the last line.
    pub detail: String,
    /// The request id in the logs of the nodes.
    pub request_id: Option<String>,
    /// Details of a refused claim.
    pub claim: Option<Box<ClaimRefusal>>,
}

impl ApiError {
    /// Parses an error body. A body in another format becomes the detail.
    pub(crate) fn parse(status: StatusCode, body: &[u8]) -> Self {
        let read = serde_json::from_slice::<Errors>(body).ok();
        let item = read
            .and_then(|body| body.errors.into_iter().next())
            .unwrap_or_else(|| ErrorDetail {
                detail: Some(String::from_utf8_lossy(body).trim().to_owned()),
                ..ErrorDetail::default()
            });
        Self {
            status,
            code: item.code,
            detail: item.detail.or(item.title).unwrap_or_default(),
            request_id: item.request_id,
            claim: item.claim.map(Box::new),
        }
    }

    /// The message without the standard sentence of the status.
    pub fn message(&self) -> &str {
        let detail = self.detail.trim_end();
        detail.rsplit('\n').next().unwrap_or(detail).trim_start()
    }

    /// Whether the error code means that the write never entered the log.
    pub(crate) fn nothing_committed(&self) -> bool {
        let harmless = [
            "placement.unavailable.nothing_committed",
            "placement.unavailable.busy",
            "placement.unavailable.identity",
            "placement.partition.misdirected",
            "placement.partition.not_found",
            "placement.too_many_requests",
        ];
        let code = self.code.as_deref();
        code.is_some_and(|code| harmless.contains(&code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_in_the_api_s_format_keeps_its_parts() {
        let body = br#"{"errors": [{"status": 409, "title": "Conflict",
            "detail": "There was a conflict when trying to complete your request.\n\n generation  ",
            "code": "placement.concurrent_update", "request_id": "req-1"}]}"#;
        let error = ApiError::parse(StatusCode::CONFLICT, body);
        assert_eq!(error.code.as_deref(), Some("placement.concurrent_update"));
        assert_eq!(
            error.to_string(),
            "409 Conflict: generation (request req-1)"
        );
    }

    #[test]
    fn a_refused_claim_keeps_its_numbers() {
        let body = br#"{"errors": [{"status": 409, "detail": "over", "code": "placement.claim.over_ceiling",
            "ceiling": 1, "used": 8, "requested": 4, "limit": 10}]}"#;
        let error = ApiError::parse(StatusCode::CONFLICT, body);
        let expected = ClaimRefusal::OverCeiling {
            ceiling: 1,
            used: 8,
            requested: 4,
            limit: 10,
        };
        assert_eq!(error.claim.as_deref(), Some(&expected));
        let body = br#"{"errors": [{"status": 409, "detail": "full", "reasons": [{"choice": 2, "code": "capacity"}]}]}"#;
        let error = ApiError::parse(StatusCode::CONFLICT, body);
        let Some(ClaimRefusal::NoRoom { reasons }) = error.claim.as_deref() else {
            panic!("{error:?}");
        };
        assert_eq!((reasons[0].choice, &*reasons[0].code), (2, "capacity"));
    }

    #[test]
    fn any_other_body_is_the_detail() {
        let error = ApiError::parse(StatusCode::BAD_GATEWAY, b"proxy says no\n");
        assert_eq!(error.detail, "proxy says no");
    }
}
