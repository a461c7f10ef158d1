//! The API's description of itself: an OpenAPI 3.1 document, made of the routes, of the schemas
//! that requests are checked against, of `operations`, which says what each operation is for and
//! what it answers, and of `document.json`, which has what depends on none of these. Kept as
//! `docs/openapi.json`; served as `GET /openapi.json`.
//! Source of the format: the OpenAPI Specification 3.1.1 and JSON Schema 2020-12.

mod answers;
mod operations;
mod parameters;
mod references;
mod template;
mod versions;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Map, Value, json};

use self::operations::About;
use self::versions::Span;
use super::edge::route::{Needs, Operation, Route};
use super::routes::ROUTES;
use super::wire::microversion::Microversion;
use super::wire::schema::Schema;

/// Where it is served.
pub(crate) const PATH: &str = "/openapi.json";

/// `GET /openapi.json`, to be mounted beside the API. Needs no token, like a node's health.
///
/// `server` is the URL below which the paths of the document are, absolute or from the root.
pub(crate) fn router(server: &str) -> Router {
    let server = if server.is_empty() { "/" } else { server }.to_owned();
    // Made when it is asked for: most nodes are never asked.
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

/// The whole document.
fn document() -> Value {
    let mut document = template::document();
    // A path without its slash, which some clients ask for, is no path to OpenAPI.
    for route in ROUTES.iter().filter(|route| !route.path.is_empty()) {
        document["paths"][route.path] = path_item(route);
    }
    document
}

/// An operation that a policy rule guards.
pub(crate) struct Guarded {
    pub(crate) rule: &'static str,
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// What it is for.
    pub(crate) summary: &'static str,
}

/// Every operation that a policy rule guards.
pub(crate) fn guarded() -> Vec<Guarded> {
    let mut found: Vec<Guarded> = Vec::new();
    for route in &ROUTES {
        for operation in route.operations {
            let about = operations::find(operation.method, route.path);
            let (Some(rule), Some(about)) = (operation.policy, about) else {
                continue;
            };
            let one = Guarded {
                rule,
                method: operation.method,
                path: route.path,
                summary: about.summary,
            };
            // Some versions have an operation of their own.
            if !(found.last()).is_some_and(|last| {
                (last.rule, last.method, last.path) == (one.rule, one.method, one.path)
            }) {
                found.push(one);
            }
        }
    }
    found
}

fn path_item(route: &Route) -> Value {
    let mut methods: Vec<&str> = route.operations.iter().map(|one| one.method).collect();
    methods.sort_unstable();
    methods.dedup();
    let mut item: Map<String, Value> = methods
        .into_iter()
        .filter_map(|method| {
            let about = operations::find(method, route.path)?;
            Some((method.to_ascii_lowercase(), operation_item(route, about)))
        })
        .collect();
    let names: Vec<Value> = parameters::names_in(route.path)
        .map(parameters::of_path)
        .collect();
    if !names.is_empty() {
        item.insert("parameters".to_owned(), names.into());
    }
    item.into()
}

fn operation_item(route: &Route, about: &About) -> Value {
    let variants: Vec<&Operation> = route
        .operations
        .iter()
        .filter(|operation| operation.method == about.method)
        .collect();
    let span = variants
        .iter()
        .map(|variant| Span::of(variant))
        .reduce(Span::with)
        .expect("an operation is described if its route has it");
    let mut item = json!({
        "operationId": about.id,
        "tags": [about.tag()],
        "summary": about.summary,
        "description": description(about, span),
        "x-placement-microversions": {"min": span.first().to_string(), "max": span.last().to_string()},
        "parameters": parameters(&variants, about, span),
        "responses": answers::responses(route, &variants, about),
    });
    let policies: Vec<&str> = variants.iter().filter_map(|one| one.policy).collect();
    match policies.first() {
        Some(policy) => item["x-placement-policy"] = json!(policy),
        // Everybody may: no token is needed.
        None => item["security"] = json!([]),
    }
    if let Some(body) = request_body(&variants, about) {
        item["requestBody"] = body;
    }
    item
}

fn description(about: &About, span: Span) -> String {
    let since = if span.first() == Microversion::MIN {
        "At every microversion.".to_owned()
    } else {
        format!("From microversion {}.", span.first())
    };
    [about.description, &since]
        .iter()
        .filter(|text| !text.is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join(" ")
}

fn parameters(variants: &[&Operation], about: &About, span: Span) -> Value {
    let reads = about.method == "GET";
    let mut found = vec![references::parameter("Microversion")];
    if reads && variants.iter().any(|variant| variant.policy.is_some()) {
        found.push(references::parameter("Consistency"));
        found.push(references::parameter("MinIndex"));
    }
    found.push(references::parameter("CallerRequestId"));
    if let Some(query) = about.query {
        found.extend(parameters::of_query(query, span));
    }
    found.into()
}

/// The body, where some version wants one; each shape with the versions it belongs to.
fn request_body(variants: &[&Operation], about: &About) -> Option<Value> {
    let schema_of: fn(Microversion) -> &'static Schema = about.body?;
    let wanting: Vec<Span> = variants
        .iter()
        .filter(|variant| variant.needs == Needs::Content)
        .map(|variant| Span::of(variant))
        .collect();
    let shapes: Vec<_> = wanting
        .iter()
        .flat_map(|span| versions::shapes(*span, |version| schema_of(version).to_json_schema()))
        .collect();
    Some(json!({
        // Of a method of which some versions want no body, none needs to be sent.
        "required": wanting.len() == variants.len(),
        "content": {"application/json": {"schema": versions::any_of(shapes)}},
    }))
}

#[cfg(test)]
mod tests {
    use super::operations::OPERATIONS;
    use super::*;
    use std::collections::BTreeSet;

    const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");

    #[test]
    fn each_operation_of_the_routes_is_described_and_no_other() {
        let routed: BTreeSet<(&str, &str)> = ROUTES
            .iter()
            .filter(|route| !route.path.is_empty())
            .flat_map(|route| route.operations.iter().map(|one| (one.method, route.path)))
            .collect();
        let described: BTreeSet<(&str, &str)> = OPERATIONS
            .iter()
            .map(|about| (about.method, about.path))
            .collect();
        assert_eq!(routed, described);
        assert_eq!(described.len(), OPERATIONS.len(), "described once each");
    }

    /// The document says of methods what the routes say.
    #[test]
    fn the_document_has_the_methods_of_the_routes() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        for route in ROUTES.iter().filter(|route| !route.path.is_empty()) {
            let item = paths[route.path].as_object().unwrap();
            let shown: BTreeSet<String> = item
                .keys()
                .filter(|key| *key != "parameters")
                .map(|key| key.to_ascii_uppercase())
                .collect();
            let allowed = route.allow();
            let allowed = allowed.split(", ").map(str::to_owned).collect();
            assert_eq!(shown, allowed, "{}", route.path);
        }
        let beside = ["/livez", "/openapi.json", "/readyz"];
        assert_eq!(paths.len(), ROUTES.len() - 1 + beside.len());
        assert!(beside.iter().all(|path| paths.contains_key(*path)));
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

    /// `PLACEMENT_WRITE_DOCS=1 cargo test --workspace --lib openapi` writes the file anew.
    #[test]
    fn the_file_in_docs_is_the_document_that_is_served() {
        let text = serde_json::to_string_pretty(&document()).unwrap();
        if std::env::var_os("PLACEMENT_WRITE_DOCS").is_some() {
            std::fs::write(KEPT, format!("{text}\n")).unwrap();
        }
        // Read back, since reading may round the last digit of a number.
        let document: Value = serde_json::from_str(&text).unwrap();
        let kept: Value = serde_json::from_slice(&std::fs::read(KEPT).unwrap()).unwrap();
        assert!(
            kept == document,
            "docs/openapi.json is not what the routes and schemas say now; write it anew with \
             PLACEMENT_WRITE_DOCS=1 cargo test --workspace --lib openapi, and read the \
             difference"
        );
    }

    #[test]
    fn bodies_are_shown_for_each_span_of_versions() {
        let document = document();
        let path = "/paths/~1allocations~1{consumer_uuid}/put/requestBody/content/application~1json/schema/anyOf";
        let shapes = document.pointer(path).unwrap().as_array().unwrap();
        let titles: Vec<&str> = shapes
            .iter()
            .map(|shape| shape["title"].as_str().unwrap())
            .collect();
        assert_eq!(
            titles,
            [
                "1.0 to 1.7",
                "1.8 to 1.11",
                "1.12 to 1.27",
                "1.28 to 1.33",
                "1.34 to 1.37",
                "1.38 to 1.39"
            ]
        );
    }
}
