//! Request headers as text.

use http::HeaderMap;

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

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}
