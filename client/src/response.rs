//! A response of a node.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use crate::consistency::Position;
use crate::error::{ApiError, Error};

/// A response of any status.
#[derive(Debug, Clone)]
pub struct ApiResponse {
    /// Method and path of the request, for error messages.
    pub(crate) what: String,
    /// HTTP status of the response.
    pub status: StatusCode,
    /// All headers of the response.
    pub headers: HeaderMap,
    /// The complete body; empty if it is streamed.
    pub body: Bytes,
}

impl ApiResponse {
    /// A header as text; `None` if it is missing or not ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Position of the response in the history.
    pub fn position(&self) -> Position {
        Position::from_headers(&self.headers)
    }

    /// The body parsed as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Malformed {
            what: self.what.clone(),
            reason: error.to_string(),
        })
    }

    /// The error if the status is 4xx or 5xx.
    pub fn error(&self) -> Option<ApiError> {
        (self.status.is_client_error() || self.status.is_server_error())
            .then(|| ApiError::parse(self.status, &self.body))
    }

    /// The response if it is 2xx, otherwise its error.
    pub fn success(self) -> Result<Self, Error> {
        if self.status.is_success() {
            return Ok(self);
        }
        let error = ApiError::parse(self.status, &self.body);
        Err(Error::Refused(Box::new(error)))
    }

    /// `Retry-After` in whole seconds (RFC 9110 section 10.2.3; the form with a date is not used).
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.header("retry-after")?.parse().ok()?;
        Some(Duration::from_secs(seconds))
    }
}
