//! What of the document depends on no route: `document.json`, with its holes filled. A hole is a
//! `null` there, for what the code knows.

use serde_json::{Value, json};

use super::references::{common_headers, reference};
use super::versions;
use crate::http::errors::code;
use crate::http::wire::microversion::Microversion;

/// The document, with those paths only that are not the API's.
pub(super) fn document() -> Value {
    let mut document: Value =
        serde_json::from_str(include_str!("document.json")).expect("the file is JSON");
    let mut fill = |hole: &str, value: Value| {
        let hole = document.pointer_mut(hole).expect("the file has this hole");
        assert!(hole.is_null(), "a hole is filled once");
        *hole = value;
    };
    let (oldest, newest) = (Microversion::MIN.to_string(), Microversion::MAX.to_string());
    fill("/info/version", json!(newest));
    fill(
        "/components/parameters/Microversion/schema/enum",
        microversions(),
    );
    fill(
        "/components/schemas/Error/properties/code/enum",
        json!(code::ALL),
    );
    let versions = "/components/schemas/Versions/properties/versions/items/properties";
    fill(&format!("{versions}/min_version/const"), json!(oldest));
    fill(&format!("{versions}/max_version/const"), json!(newest));
    let errors = document["components"]["responses"]
        .as_object_mut()
        .expect("the file has the meaning of each error");
    for (status, error) in errors {
        complete(status, error);
    }
    document
}

fn microversions() -> Value {
    let numbered = versions::all().map(|version| format!("placement {version}"));
    numbered.chain(["placement latest".to_owned()]).collect()
}

/// Adds headers and body to what an error means.
fn complete(status: &str, error: &mut Value) {
    // These are answered before the request is one.
    if status == "431" {
        return;
    }
    let mut headers = common_headers();
    match status {
        "405" => headers["Allow"] = reference("headers", "Allow"),
        "429" | "503" => headers["Retry-After"] = reference("headers", "RetryAfter"),
        _ => {}
    }
    let schema = match status {
        "401" => "Unauthorized",
        _ => "Errors",
    };
    error["headers"] = headers;
    error["content"] = json!({
        "application/json": {"schema": reference("schemas", schema)},
        "text/html": {"schema": {"type": "string"}},
        "text/plain": {"schema": {"type": "string"}},
    });
}
