//! Errors as JSON, HTML and text.
//!
//! JSON follows the OpenStack API guideline on errors: `errors[0]` with `status`, `title`,
//! `detail`, `request_id` and, from 1.23, `code`. 401 has a form of its own.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::StatusCode;
use placement_wire::claims::ClaimRefusal;
use serde::Serialize;
use serde_json::json;

use super::code;
use super::error::ApiError;
use super::frame::{Frame, RequestParts};

/// Initial capacity for a body. Most bodies fit; growing by doubling would take as long as writing.
const USUAL_BYTES: usize = 1024;

/// The formats of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// `application/json`.
    Json,
    /// `text/html`, for errors only.
    Html,
    /// `text/plain`, for errors only.
    Plain,
}

impl ApiError {
    /// The body, and its content type.
    pub(crate) fn render(&self, format: Format, asked: RequestParts<'_>) -> (Bytes, &'static str) {
        const JSON: &str = "application/json";
        let frame = Frame::for_status(self.status, asked);
        let is_401 = self.status == StatusCode::UNAUTHORIZED;
        match format {
            // The header is the challenge of `[auth] strategy = "keystone"`.
            _ if is_401 && self.header.is_some() => (self.json_like_keystone(), JSON),
            Format::Json if is_401 => (self.json_unauthenticated(&frame), JSON),
            Format::Json => (self.json(&frame, asked), JSON),
            Format::Html => (self.html(&frame).into(), "text/html; charset=UTF-8"),
            Format::Plain => (self.plain(&frame).into(), "text/plain; charset=UTF-8"),
        }
    }

    fn title(&self) -> &'static str {
        match self.status {
            StatusCode::PAYLOAD_TOO_LARGE => "Request Entity Too Large",
            StatusCode::URI_TOO_LONG => "Request URI Too Long",
            status => status.canonical_reason().unwrap_or("Error"),
        }
    }

    fn status_line(&self) -> String {
        format!("{} {}", self.status.as_u16(), self.title())
    }

    fn json(&self, frame: &Frame, asked: RequestParts<'_>) -> Bytes {
        #[derive(Serialize)]
        struct One<'a> {
            status: u16,
            title: &'a str,
            detail: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            code: Option<&'a str>,
            request_id: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            max_version: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            min_version: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            oldest: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            oldest_at: Option<&'a str>,
            #[serde(flatten, skip_serializing_if = "Option::is_none")]
            claim: Option<&'a ClaimRefusal>,
        }
        let is_given = asked.since_23 || code::OWN.contains(&self.code);
        let (min_version, max_version) = self.versions.unzip();
        let error = One {
            status: self.status.as_u16(),
            title: self.title(),
            detail: frame.text(&self.message),
            code: is_given.then_some(self.code),
            request_id: asked.request_id,
            max_version,
            min_version,
            oldest: self.oldest.as_ref().map(|oldest| oldest.0.as_str()),
            oldest_at: self.oldest.as_ref().and_then(|oldest| oldest.1.as_deref()),
            claim: self.claim.as_deref(),
        };
        to_json(&BTreeMap::from([("errors", [error])]))
    }

    fn json_unauthenticated(&self, frame: &Frame) -> Bytes {
        to_json(&json!({
            "message": frame.html_unescaped(&self.message),
            "code": self.status_line(),
            "title": self.title(),
        }))
    }

    /// The answer of keystonemiddleware in front of upstream, followed by our reason.
    fn json_like_keystone(&self) -> Bytes {
        let message = &self.message;
        to_json(&json!({"error": {
            "code": self.status.as_u16(),
            "title": self.title(),
            "message": format!("The request you have made requires authentication. {message}"),
        }}))
    }

    fn html(&self, frame: &Frame) -> String {
        let (line, body) = (self.status_line(), frame.html(&self.message));
        format!(
            "<html>\n <head>\n  <title>{line}</title>\n </head>\n <body>\n  <h1>{line}</h1>\n  \
             {body}\n </body>\n</html>"
        )
    }

    fn plain(&self, frame: &Frame) -> String {
        format!("{}\n\n{}", self.status_line(), frame.text(&self.message))
    }
}

/// Serializes one of our own types.
pub(crate) fn to_json(value: &impl Serialize) -> Bytes {
    let mut json = Vec::with_capacity(USUAL_BYTES);
    serde_json::to_writer(&mut json, value)
        .expect("our own types have string keys and finite numbers");
    json.into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn keystone_401_has_the_text_of_its_middleware_and_our_reason() {
        let error = ApiError::unauthenticated("Send a token.").challenge("http://keystone");
        let asked = RequestParts {
            method: "GET",
            accept: None,
            content_type: None,
            request_id: "req-1",
            since_23: false,
        };
        let (body, content_type) = error.render(Format::Html, asked);
        assert_eq!(content_type, "application/json");
        let body: Value = serde_json::from_slice(&body).unwrap();
        let message = "The request you have made requires authentication. Send a token.";
        let expected = json!({"code": 401, "title": "Unauthorized", "message": message});
        assert_eq!(body, json!({ "error": expected }));
    }
}
