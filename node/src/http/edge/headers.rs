//! Headers as text.

use std::borrow::Cow;

use http::header::{AsHeaderName, HeaderMap, HeaderName, HeaderValue};

/// All values of a header, joined by commas; bytes that are not ASCII are read as Latin-1.
pub(in crate::http) fn text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<Cow<'_, str>> {
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
pub(in crate::http) fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
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
