//! What can go wrong between a caller and the cluster.

use http::StatusCode;
use serde::Deserialize;

/// Why a call did not give what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The service understood the request and refused it (4xx), or failed on it (5xx).
    #[error(transparent)]
    Refused(Box<ApiError>),
    /// The write provably never entered the log, and the client's patience is over. Safe to repeat.
    #[error("{}", ended(reason, "nothing was committed"))]
    NothingCommitted {
        /// What happened.
        reason: String,
    },
    /// The write may or may not be committed. Look before you repeat it.
    #[error("{}", ended(.0, "the outcome of the write is unknown"))]
    OutcomeUnknown(String),
    /// No node answered a read, or none could be connected to, within the client's patience.
    /// Nothing was written. It says what the last attempt met.
    #[error("no node answered: {0}")]
    Unreachable(String),
    /// The answer has not the shape that the API promises.
    #[error("the answer to {what} cannot be understood: {reason}")]
    Malformed {
        /// Which request.
        what: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// An endpoint that is no URL of a node.
    #[error("`{endpoint}` is not an endpoint: {reason}")]
    BadEndpoint {
        /// As given.
        endpoint: String,
        /// What is expected.
        reason: String,
    },
    /// A request that cannot be expressed in HTTP.
    #[error("the request cannot be sent: {0}")]
    BadRequest(String),
}

/// A reason with what it means. The answer of a node says so already.
fn ended(reason: &str, end: &str) -> String {
    match reason.contains(end) {
        true => reason.to_owned(),
        false => format!("{reason}; {end}"),
    }
}

impl Error {
    /// The HTTP status of a refusal.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Refused(error) => Some(error.status),
            _ => None,
        }
    }

    /// Whether the service refused with 409: another client was faster, or there is no room.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(StatusCode::CONFLICT)
    }
}

/// An error body in the API's own format.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{status}: {}{}", self.message(), request_id.as_ref().map(|id| format!(" (request {id})")).unwrap_or_default())]
pub struct ApiError {
    /// The HTTP status.
    pub status: StatusCode,
    /// The error's code (from microversion 1.23), such as `placement.concurrent_update`.
    pub code: Option<String>,
    /// What happened, for a person: the status's standard sentence, and on the last line the
    /// message.
    pub detail: String,
    /// The id under which the nodes logged the request.
    pub request_id: Option<String>,
}

#[derive(Deserialize)]
struct ErrorBody {
    errors: Vec<ErrorItem>,
}

#[derive(Default, Deserialize)]
struct ErrorItem {
    code: Option<String>,
    detail: Option<String>,
    title: Option<String>,
    request_id: Option<String>,
}

impl ApiError {
    /// Reads an error body; one that is not in the API's format becomes the detail.
    pub(crate) fn parse(status: StatusCode, body: &[u8]) -> Self {
        let read = serde_json::from_slice::<ErrorBody>(body).ok();
        let item = read.and_then(|body| body.errors.into_iter().next());
        let item = item.unwrap_or_else(|| ErrorItem {
            detail: Some(String::from_utf8_lossy(body).trim().to_owned()),
            ..ErrorItem::default()
        });
        Self {
            status,
            code: item.code,
            detail: item.detail.or(item.title).unwrap_or_default(),
            request_id: item.request_id,
        }
    }

    /// What happened, without the status's standard sentence.
    pub fn message(&self) -> &str {
        let detail = self.detail.trim_end();
        detail.rsplit('\n').next().unwrap_or(detail).trim_start()
    }

    /// The node says that the write never entered the log, or that it had no room for the request.
    pub(crate) fn nothing_committed(&self) -> bool {
        let harmless = [
            "placement.unavailable.nothing_committed",
            "placement.unavailable.busy",
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
    fn any_other_body_is_the_detail() {
        let error = ApiError::parse(StatusCode::BAD_GATEWAY, b"proxy says no\n");
        assert_eq!(error.detail, "proxy says no");
    }
}
