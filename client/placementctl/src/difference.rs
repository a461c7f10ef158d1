//! Differences between the responses of two services to one request.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::render::word;

/// Maximum length of a displayed difference, in characters.
const SHOWN_MAX: usize = 200;

/// Whether `Last-Modified` is the time at which the content changed. Upstream sends the time of the
/// request if the response is empty, or if it stores no time for the content.
pub(crate) fn has_time(path: &str, body: &Map<String, Value>) -> bool {
    let is_empty = |value: &Value| *value == json!({}) || *value == json!([]);
    let mut parts = ["inventories", "allocations", "traits"]
        .iter()
        .filter_map(|part| body.get(*part));
    !path.contains("/usages") && !path.ends_with("/aggregates") && !parts.any(is_empty)
}

/// Normalizes a response for comparison: removes the path prefix of the API from links.
pub(crate) fn normal(value: Value) -> Value {
    match value {
        Value::Array(all) => all.into_iter().map(normal).collect(),
        Value::Object(all) => {
            let all = all.into_iter().map(|(key, value)| {
                let route = value
                    .as_str()
                    .filter(|_| key == "href")
                    .and_then(|href| href.get(href.find("/resource_")?..))
                    .map(Value::from);
                (key, route.unwrap_or_else(|| normal(value)))
            });
            all.collect()
        }
        plain => plain,
    }
}

/// The parts of `one` that `other` lacks or that differ. The order of lists is ignored.
fn lacking(one: &Value, other: &Value) -> Option<Value> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let lacking: Map<_, _> = one
                .iter()
                .filter_map(|(key, value)| {
                    let found = other.get(key);
                    let lacking = found.map_or(Some(value.clone()), |found| lacking(value, found));
                    Some((key.clone(), lacking?))
                })
                .collect();
            (!lacking.is_empty()).then(|| lacking.into())
        }
        (Value::Array(one), Value::Array(other)) => {
            let other: BTreeSet<_> = other.iter().map(Value::to_string).collect();
            let lacking: Vec<_> = one
                .iter()
                .filter(|item| !other.contains(&item.to_string()))
                .cloned()
                .collect();
            (!lacking.is_empty()).then(|| lacking.into())
        }
        _ => (one != other).then(|| one.clone()),
    }
}

/// A line that describes the difference; `None` if the values are equal.
pub(crate) fn difference(path: &str, [a, b]: [&Value; 2]) -> Option<String> {
    let lacking = [lacking(a, b), lacking(b, a)];
    if lacking.iter().all(Option::is_none) {
        return None;
    }
    let [a, b] = lacking.map(|value| match value {
        None => "-".to_owned(),
        Some(Value::Null) => "404 Not Found".to_owned(),
        Some(value) => {
            let text = word(value.to_string());
            match text.char_indices().nth(SHOWN_MAX) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    });
    Some(format!("{}  A: {a}  B: {b}\n", word(path)))
}
