//! What several operations share, by reference.

use serde_json::{Value, json};

/// A reference to what the document describes once.
pub(super) fn reference(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}

/// A parameter that several operations have.
pub(super) fn parameter(name: &str) -> Value {
    reference("parameters", name)
}

/// An answer that several operations have: an error.
pub(super) fn response(status: u16) -> Value {
    reference("responses", &status.to_string())
}

/// The headers that every response of the API has.
pub(super) fn common_headers() -> Value {
    json!({
        "X-Openstack-Request-Id": reference("headers", "RequestId"),
        "Placement-Index": reference("headers", "Index"),
        "Placement-Node": reference("headers", "Node"),
        "Placement-Known-Leader": reference("headers", "KnownLeader"),
        "Placement-Staleness": reference("headers", "Staleness"),
        "Placement-Effective-Consistency": reference("headers", "EffectiveConsistency"),
    })
}
