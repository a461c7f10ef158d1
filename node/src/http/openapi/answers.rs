//! Every status that an operation can answer.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::operations::{About, Success};
use super::references::{common_headers, reference, response};
use crate::http::edge::route::{Needs, Operation, Route};

/// All answers of an operation: its own successes, and the errors that follow from what it is.
pub(super) fn responses(route: &Route, variants: &[&Operation], about: &About) -> Value {
    let mut found: BTreeMap<String, Value> = BTreeMap::new();
    let mut put = |status: u16, answer: Value| found.insert(status.to_string(), answer);
    for answer in about.success {
        put(answer.status, success(answer));
    }
    for status in [400, 406, 408, 413, 414, 429, 431, 500, 503] {
        put(status, response(status));
    }
    let guarded = variants.iter().any(|variant| variant.policy.is_some());
    if guarded {
        for status in [401, 403, 421] {
            put(status, response(status));
        }
    }
    if guarded && about.method == "GET" {
        put(412, response(412));
    }
    if guarded && about.method != "GET" {
        put(507, response(507));
    }
    let young = variants.iter().all(|variant| variant.since > 0);
    if variants.iter().any(|variant| variant.too_old_is_405) {
        put(405, response(405));
    }
    if young || route.path.contains('{') {
        put(404, response(404));
    }
    if variants
        .iter()
        .any(|variant| variant.needs == Needs::Content)
    {
        put(415, response(415));
    }
    if about.conflicts {
        put(409, response(409));
    }
    json!(found)
}

fn success(answer: &Success) -> Value {
    let mut headers = common_headers();
    headers["OpenStack-API-Version"] = reference("headers", "ServedMicroversion");
    headers["Vary"] = reference("headers", "Vary");
    if answer.located {
        headers["Location"] = reference("headers", "Location");
    }
    if answer.dated {
        headers["Cache-Control"] = reference("headers", "CacheControl");
        headers["Last-Modified"] = reference("headers", "LastModified");
    }
    let mut found = json!({"description": answer.means, "headers": headers});
    if let Some(body) = answer.body {
        let schema = reference("schemas", body);
        found["content"] = json!({"application/json": {"schema": schema}});
    }
    found
}
