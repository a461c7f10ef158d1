//! A request to the API, independent of the node.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::consistency::Consistency;
use crate::error::Error;

/// Characters to encode: all except the unreserved ones (RFC 3986 section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Percent-encodes one path segment, or one key or value of a query.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// A request: method, path, query, headers, body.
#[derive(Debug, Clone)]
#[must_use]
pub struct ApiRequest {
    pub(crate) method: Method,
    pub(crate) path_and_query: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
    pub(crate) consistency: Option<Consistency>,
    pub(crate) problem: Option<String>,
}

impl ApiRequest {
    /// A request without a body. The path is sent unchanged, so it must be percent-encoded.
    pub fn new(method: Method, path: &str) -> Self {
        Self {
            method,
            path_and_query: path.to_owned(),
            headers: Vec::new(),
            body: Bytes::new(),
            consistency: None,
            problem: None,
        }
    }

    /// A GET request of this path.
    pub fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    /// A PUT request of this path.
    pub fn put(path: &str) -> Self {
        Self::new(Method::PUT, path)
    }

    /// A POST request of this path.
    pub fn post(path: &str) -> Self {
        Self::new(Method::POST, path)
    }

    /// A DELETE request of this path.
    pub fn delete(path: &str) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// Adds a query parameter and encodes it.
    pub fn query(mut self, key: &str, value: &str) -> Self {
        let has_query = self.path_and_query.contains('?');
        let separator = if has_query { '&' } else { '?' };
        let parameter = format!("{separator}{}={}", encode(key), encode(value));
        self.path_and_query.push_str(&parameter);
        self
    }

    /// Sets a header; it replaces the header of that name that the client would send.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (name.parse(), value.parse()) {
            (Ok(name), Ok(value)) => self.headers.push((name, value)),
            _ => self.problem = Some(format!("`{name}: {value}` is not a header")),
        }
        self
    }

    /// Sets the microversion, such as `1.39` or `latest`.
    pub fn microversion(self, version: &str) -> Self {
        self.header("openstack-api-version", &format!("placement {version}"))
    }

    /// Sets the consistency; it replaces the client's.
    pub fn consistency(mut self, consistency: Consistency) -> Self {
        self.consistency = Some(consistency);
        self
    }

    /// Sets a JSON body and its content type.
    pub fn json(mut self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => self.body = Bytes::from(bytes),
            Err(error) => self.problem = Some(format!("the body is not JSON: {error}")),
        }
        self.header("content-type", "application/json")
    }

    /// Sets a body; the caller sets its content type.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Whether the method is safe, so that repeating changes nothing.
    pub(crate) fn is_read(&self) -> bool {
        self.method.is_safe()
    }

    /// Method and path for error messages.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path_and_query)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let problem = self.problem.clone();
        problem.map_or(Ok(()), |problem| Err(Error::BadRequest(problem)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_encoded() {
        let request = ApiRequest::get("/resource_providers")
            .query("name", "a b&c")
            .query("required", "!X");
        assert_eq!(
            request.path_and_query,
            "/resource_providers?name=a%20b%26c&required=%21X"
        );
    }

    #[test]
    fn an_invalid_header_is_an_error_before_sending() {
        let request = ApiRequest::get("/").header("x", "line\nbreak");
        assert!(matches!(request.check(), Err(Error::BadRequest { .. })));
    }
}
