//! The OpenAPI 3.1 document of the API, served at `GET /openapi.json`. `openapi.json` has the
//! purpose of each operation, its input (bodies are validated against these schemas) and its
//! successful answer. This module adds the parts that follow from the routes: versions, policy
//! rules, headers and errors. For this service's own routes the document has purpose and input
//! only; their answers are JSON objects that `docs/api.md` describes. Source of the format: the
//! OpenAPI Specification 3.1.1 and JSON Schema 2020-12.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};

use super::edge::route::{Operation, RequiredHeaders, Route};
use super::errors::code;
use super::routes::{ROUTES, WEB};
use super::wire::microversion::Microversion;
use super::wire::schema::DOCUMENT;

/// The path of the document.
pub const PATH: &str = "/openapi.json";

/// A router with `GET /openapi.json`, which needs no token, like a node's health checks.
///
/// `server` is the base URL of the paths in the document: an absolute URL, or a path from the root.
pub fn router(server: &str) -> Router {
    let server = if server.is_empty() { "/" } else { server }.to_owned();
    // Built on the first request, as most nodes never get one.
    let text = Arc::new(LazyLock::new(move || {
        let mut document = document();
        document["servers"][0]["url"] = json!(server);
        Bytes::from(document.to_string())
    }));
    let json = HeaderValue::from_static("application/json");
    Router::new().route(
        PATH,
        get(|| async move { ([(CONTENT_TYPE, json)], Bytes::clone(&text)) }),
    )
}

/// The document, completed with the parts that are generated from the code: microversions, error
/// codes, and the details of each route.
pub fn document() -> Value {
    let mut document = DOCUMENT.clone();
    let versions = (0..=Microversion::MAX.minor())
        .map(|minor| format!("placement 1.{minor}"))
        .chain(["placement latest".to_owned()]);
    document["info"]["version"] = json!(Microversion::MAX.text());
    let query = document["paths"]["/allocation_candidates"]["get"]["parameters"].clone();
    for own in ["/placementd/v1/explain", "/placementd/v1/what-if"] {
        document["paths"][own]["get"]["parameters"] = query.clone();
    }
    let parameters = &mut document["components"]["parameters"];
    parameters["Microversion"]["schema"]["enum"] = versions.collect();
    let schemas = &mut document["components"]["schemas"];
    schemas["Error"]["properties"]["code"]["enum"] = json!([code::REFERENCE, code::OWN].concat());
    let known = &mut schemas["Versions"]["properties"]["versions"]["items"]["properties"];
    known["min_version"]["const"] = json!(Microversion::MIN.text());
    known["max_version"]["const"] = json!(Microversion::MAX.text());
    for (status, error) in members(&mut document["components"]["responses"]) {
        complete_error(status, error);
    }
    for route in described() {
        for (method, about) in members(&mut document["paths"][route.path]) {
            if method != "parameters" {
                complete(about, route, &method.to_ascii_uppercase());
            }
        }
    }
    document
}

/// The routes that OpenAPI can describe: all except the empty path, which some clients request.
fn described() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(|route| !route.path.is_empty())
}

fn members(value: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    value.as_object_mut().into_iter().flatten()
}

/// Adds the parts that follow from the route to the description of an operation.
fn complete(about: &mut Value, route: &Route, method: &str) {
    let operations = route.operations.iter();
    let variants: Vec<&Operation> = operations.filter(|one| one.method == method).collect();
    let since = variants.iter().map(|one| one.since).min().unwrap_or(0);
    let newest = Microversion::MAX.minor();
    let until = variants.iter().map(|one| one.until.min(newest)).max();
    let policy = variants.iter().find_map(|one| one.policy);
    let has_token = route.path != "/";
    let reads = (method == "GET" || route.is_own()) && has_token;
    if route.is_own() {
        about["tags"] = json!(["placementd"]);
        let has_success = about["responses"]
            .as_object()
            .is_some_and(|all| all.keys().any(|status| status.starts_with('2')));
        if !has_success {
            let object = json!({"application/json": {"schema": {"type": "object"}}});
            about["responses"]["200"] =
                json!({"description": "The requested data.", "content": object});
        }
    }

    let versions = match since {
        0 => "At every microversion.".to_owned(),
        since => format!("From microversion 1.{since}."),
    };
    let description = about["description"]
        .as_str()
        .map(|text| format!("{text} {versions}"));
    about["description"] = json!(description.unwrap_or(versions));
    about["x-placement-microversions"] =
        json!({"min": format!("1.{since}"), "max": format!("1.{}", until.unwrap_or(newest))});
    if let Some(rule) = policy {
        about["x-placement-policy"] = json!(rule);
    }
    if !has_token {
        about["security"] = json!([]);
    }

    let is_get = method == "GET" && has_token;
    let shared: [(bool, &[&str]); 4] = [
        (true, &["Microversion"]),
        (reads, &["Consistency", "MinIndex"]),
        (is_get, &["AsOf"]),
        (true, &["CallerRequestId"]),
    ];
    let shared = shared
        .iter()
        .filter(|(has, _)| *has)
        .flat_map(|(_, names)| *names);
    let own = about["parameters"].as_array().cloned().unwrap_or_default();
    let shared = shared.map(|name| reference("parameters", name));
    about["parameters"] = shared.chain(own).collect();

    let answers = members(&mut about["responses"]).map(|(_, answer)| answer);
    for answer in answers.filter(|answer| answer.get("$ref").is_none()) {
        add_common_headers(answer);
        answer["headers"]["OpenStack-API-Version"] = reference("headers", "ServedMicroversion");
        answer["headers"]["Vary"] = reference("headers", "Vary");
    }
    for status in errors(route, &variants, has_token, reads, is_get) {
        about["responses"][status] = reference("responses", status);
    }
}

/// The errors of an operation, except 409.
fn errors(
    route: &Route,
    variants: &[&Operation],
    has_token: bool,
    reads: bool,
    is_get: bool,
) -> Vec<&'static str> {
    let some = |has: fn(&Operation) -> bool| variants.iter().any(|one| has(one));
    let young = !some(|one| one.since == 0);
    let always = [
        "400", "406", "408", "413", "414", "429", "431", "500", "503",
    ];
    let writes = !reads || some(|one| one.policy.is_some_and(placement_policy::is_own_write));
    let groups: [(bool, &[&str]); 8] = [
        (true, &always),
        (has_token, &["401", "403", "421"]),
        (has_token && reads, &["412"]),
        (has_token && writes, &["507"]),
        (is_get, &["410"]),
        (some(|one| one.too_old_is_405), &["405"]),
        (young || route.path.contains('{'), &["404"]),
        (some(|one| one.needs == RequiredHeaders::Content), &["415"]),
    ];
    let found = groups.iter().filter(|(has, _)| *has);
    found.flat_map(|(_, statuses)| *statuses).copied().collect()
}

/// Completes the description of an error with headers and body.
fn complete_error(status: &str, error: &mut Value) {
    // 431 is sent before the request is parsed.
    if status == "431" {
        return;
    }
    add_common_headers(error);
    if status == "405" {
        error["headers"]["Allow"] = reference("headers", "Allow");
    }
    let schema = match status {
        "401" => "Unauthorized",
        _ => "Errors",
    };
    let text = json!({"schema": {"type": "string"}});
    let json = json!({"schema": reference("schemas", schema)});
    error["content"] = json!({"application/json": json, "text/html": text, "text/plain": text});
}

/// A reference to a component of the document.
fn reference(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}

/// Adds the headers that every response of the API has.
fn add_common_headers(answer: &mut Value) {
    for (header, name) in [
        ("X-Openstack-Request-Id", "RequestId"),
        ("Placement-Index", "Index"),
        ("Placement-Node", "Node"),
        ("Placement-Known-Leader", "KnownLeader"),
        ("Placement-Staleness", "Staleness"),
        ("Placement-Effective-Consistency", "EffectiveConsistency"),
    ] {
        answer["headers"][header] = reference("headers", name);
    }
}

/// An operation that a policy rule guards.
pub struct Guarded {
    pub rule: &'static str,
    pub method: &'static str,
    pub path: &'static str,
    /// Purpose, in one line.
    pub summary: &'static str,
    /// The query parameter with the project that the rule is about; `None` if the rule is about the
    /// caller's project.
    pub queried_project: Option<&'static str>,
}

/// Every operation that a policy rule guards, the web interface last.
pub fn guarded() -> Vec<Guarded> {
    let guarded = described().flat_map(|route| {
        route.operations.iter().filter_map(|operation| {
            let about = &DOCUMENT["paths"][route.path][operation.method.to_ascii_lowercase()];
            Some(Guarded {
                rule: operation.policy?,
                method: operation.method,
                path: route.path,
                summary: about["summary"].as_str().unwrap_or_default(),
                queried_project: operation.queried_project,
            })
        })
    });
    let pages = Guarded {
        rule: WEB,
        method: "POST",
        path: "/login",
        summary: "Log in to the web interface ([web] listen) and view its pages",
        queried_project: None,
    };
    let mut guarded: Vec<Guarded> = guarded.chain([pages]).collect();
    // A method of a path may have several operations, for different microversions.
    guarded.dedup_by_key(|one| (one.rule, one.method, one.path));
    guarded
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::http::wire::schema;

    #[test]
    fn the_document_has_each_operation_of_the_routes_and_no_other() {
        let paths = DOCUMENT["paths"].as_object().unwrap();
        for route in described() {
            let item = paths[route.path].as_object().unwrap();
            let shown: BTreeSet<String> = item
                .keys()
                .filter(|key| *key != "parameters")
                .map(|key| key.to_ascii_uppercase())
                .collect();
            let allowed = route.allow().split(", ").map(str::to_owned).collect();
            assert_eq!(shown, allowed, "{}", route.path);
            for (_, about) in item.iter().filter(|(key, _)| *key != "parameters") {
                for word in ["operationId", "summary"] {
                    assert!(about[word].is_string(), "{word} of {}", route.path);
                }
            }
        }
        let others = ["/livez", "/openapi.json", "/readyz"];
        assert_eq!(paths.len(), described().count() + others.len());
        assert!(others.iter().all(|path| paths.contains_key(*path)));
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn check(value: &Value, document: &Value) {
            match value {
                Value::Object(members) => {
                    if let Some(target) = members.get("$ref").and_then(Value::as_str) {
                        let pointer = target.strip_prefix('#').unwrap();
                        assert!(document.pointer(pointer).is_some(), "{target}");
                    }
                    members.values().for_each(|member| check(member, document));
                }
                Value::Array(items) => items.iter().for_each(|item| check(item, document)),
                _ => {}
            }
        }
        let document = document();
        check(&document, &document);
    }

    #[test]
    fn each_operation_that_reads_a_body_has_a_shape_for_each_of_its_versions() {
        for route in described() {
            for operation in route.operations {
                let about = &DOCUMENT["paths"][route.path][operation.method.to_ascii_lowercase()];
                if operation.needs != RequiredHeaders::Content {
                    continue;
                }
                assert!(about["requestBody"].is_object());
                for minor in operation.since..=operation.until.min(Microversion::MAX.minor()) {
                    schema::body_of(operation.method, route.path, Microversion::new(minor));
                }
            }
        }
    }
}
