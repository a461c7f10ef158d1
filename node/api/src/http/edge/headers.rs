//! Header values as text, and request ids. A request id is `req-<uuid>`; it is in the response, in
//! an error, in the line of the access log, and at `debug` in the context of all other log lines of
//! the request.

use std::borrow::Cow;

use http::header::{AsHeaderName, HeaderMap, HeaderName, HeaderValue};

use placement_base::backend::uuid_of_request;

/// Response header with the id of this request, and request header with the id of the caller's own
/// request that led to this one.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-openstack-request-id");

/// Header with the microversion.
pub(crate) const API_VERSION: HeaderName = HeaderName::from_static("openstack-api-version");

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

/// Sets a header of a response. A value that is not valid in a header is omitted.
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

/// Splits at separators outside of quotes. Inside of quotes, `\` escapes a quote.
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

/// The caller's request id, if it is well-formed. The access log has this id and the id of the
/// request itself.
pub(crate) fn callers_request_id(headers: &HeaderMap) -> Option<String> {
    let id = text(headers, REQUEST_ID)?;
    uuid_of_request(&id).map(|_| id.into_owned())
}
