//! The schemas of bodies, from the API's description, `openapi.json`.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::types::Schema;
use crate::http::wire::microversion::Microversion;

/// The description of the API, without the parts that follow from its routes.
pub(crate) static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../openapi.json")).expect("the file is JSON")
});

/// The schema of a body in some microversions.
struct Shape {
    method: &'static str,
    path: &'static str,
    minors: RangeInclusive<u8>,
    schema: Schema,
}

static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let mut found = Vec::new();
    for (path, item) in members(&DOCUMENT["paths"]) {
        for (method, about) in members(item) {
            let body = &about["requestBody"]["content"]["application/json"]["schema"];
            let shapes = match &body["anyOf"] {
                Value::Array(shapes) => shapes,
                _ if body.is_null() => continue,
                _ => std::slice::from_ref(body),
            };
            found.extend(shapes.iter().map(|shape| Shape {
                method,
                path,
                minors: minors_of(shape),
                schema: read(shape),
            }));
        }
    }
    found
});

/// The schema of an operation's body.
pub(crate) fn body_of(method: &str, path: &str, version: Microversion) -> &'static Schema {
    let fits = |shape: &&Shape| {
        shape.path == path
            && shape.method.eq_ignore_ascii_case(method)
            && shape.minors.contains(&version.minor())
    };
    let found = SHAPES.iter().find(fits).map(|shape| &shape.schema);
    found.expect("each operation that reads a body has a shape for each of its versions")
}

/// The versions of a shape, from its title. A single shape has no title and applies to all
/// versions.
fn minors_of(shape: &Value) -> RangeInclusive<u8> {
    let Some(title) = shape["title"].as_str() else {
        return 0..=Microversion::MAX.minor();
    };
    let minor = |text: &str| text.strip_prefix("1.")?.parse().ok();
    let minors = title.split_once(" to ");
    minors
        .and_then(|(first, last)| Some(minor(first)?..=minor(last)?))
        .expect("the title of a shape is the first and the last version that has it")
}

fn members(value: &'static Value) -> impl Iterator<Item = (&'static str, &'static Value)> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(name, value)| (name.as_str(), value))
}

/// Deserializes a schema of the description.
pub(super) fn read(schema: &Value) -> Schema {
    Schema::deserialize(resolved(schema))
        .expect("the schemas in openapi.json use only keywords that `Schema` knows")
}

/// Resolves references and drops titles; a type with `null` becomes a schema of its own.
fn resolved(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else {
        return schema.clone();
    };
    if let Some(target) = schema["$ref"].as_str() {
        let target = DOCUMENT.pointer(target.trim_start_matches('#'));
        return resolved(target.expect("a reference has a target"));
    }
    let keywords = keywords.iter();
    // A `title` that is not a string is the schema of a member with that name.
    let keywords = keywords.filter(|(keyword, value)| *keyword != "title" || !value.is_string());
    let mut found: Map<String, Value> = keywords
        .map(|(keyword, value)| (keyword.clone(), resolved(value)))
        .collect();
    if schema["type"][1] == "null" {
        found.insert("type".to_owned(), schema["type"][0].clone());
        return json!({"type": "nullable", "schema": found});
    }
    found.into()
}
