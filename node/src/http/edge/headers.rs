//! Headers as text.

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// All values of a header, joined by commas; bytes that are not ASCII are read as Latin-1.
pub(in crate::http) fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let mut text = latin1(values.next()?.as_bytes());
    for value in values {
        text.push(',');
        text.push_str(&latin1(value.as_bytes()));
    }
    Some(text)
}

/// Writes a header of a response. A value that no header can have is left out.
pub(in crate::http) fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}
