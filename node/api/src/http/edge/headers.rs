//! Headers as text, and request ids: `req-<uuid>`, one per request: in its response, in its error,
//! in its line of the access log, and at `debug` in the context of all other lines that it causes.

use std::borrow::Cow;

use http::header::{AsHeaderName, HeaderMap, HeaderName, HeaderValue};

use crate::backend::uuid_of_request;

/// The header in which the id of this request is answered, and in which a caller names the
/// request of its own that led to this one.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-openstack-request-id");

/// All values of a header, joined by commas; bytes that are not ASCII are read as Latin-1.
pub(crate) fn text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<Cow<'_, str>> {
    let mut values = headers.get_all(name).iter();
    let mut text = latin1(values.next()?);
    for value in values {
        let text = text.to_mut();
        text.push(',');
        text.push_str(&latin1(value));
    }
    Some(text)
}

/// Writes a header of a response. A value that no header can have is left out.
pub(crate) fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn latin1(value: &HeaderValue) -> Cow<'_, str> {
    match value.to_str() {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => value
            .as_bytes()
            .iter()
            .map(|byte| char::from(*byte))
            .collect(),
    }
}

/// The parts between separators. What stands in quotes, with `\` before a quote of its own, is not
/// divided.
pub(super) fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(|c| {
        let is_escaped = escaped;
        escaped = quoted && c == '\\' && !is_escaped;
        quoted ^= c == '"' && !is_escaped;
        c == separator && !quoted
    })
    .collect()
}

/// The caller's id, if it gave a well-formed one. The access log has both.
pub(crate) fn callers_request_id(headers: &HeaderMap) -> Option<String> {
    let id = text(headers, REQUEST_ID)?;
    uuid_of_request(&id).map(|_| id.into_owned())
}
