//! What a body must look like: the shapes that the API's description shows, `openapi.json`.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::pattern::Pattern;
use super::types::{Object, Schema, Text, UuidForm};
use crate::http::wire::microversion::Microversion;

/// The description of the API, but for what follows from its routes.
pub(crate) static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../openapi.json")).expect("the file is JSON")
});

/// What a body looks like in some microversions.
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
                Value::Array(shapes) => shapes.iter().collect(),
                _ if body.is_null() => continue,
                _ => vec![body],
            };
            found.extend(shapes.into_iter().map(|shape| Shape {
                method,
                path,
                minors: minors_of(shape),
                schema: read(shape),
            }));
        }
    }
    found
});

/// What the body of an operation must look like.
pub(crate) fn body_of(method: &str, path: &str, version: Microversion) -> &'static Schema {
    let fits = |shape: &&Shape| {
        shape.path == path
            && shape.method.eq_ignore_ascii_case(method)
            && shape.minors.contains(&version.minor())
    };
    let found = SHAPES.iter().find(fits).map(|shape| &shape.schema);
    found.expect("each operation that reads a body has a shape for each of its versions")
}

/// The versions that a shape belongs to: its title, if there are several shapes.
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

fn read(schema: &'static Value) -> Schema {
    if let Some(target) = schema["$ref"].as_str() {
        let target = DOCUMENT.pointer(target.trim_start_matches('#'));
        return read(target.expect("a reference leads somewhere"));
    }
    match &schema["type"] {
        Value::Array(kinds) if kinds[1] == json!("null") => {
            Schema::Nullable(Box::new(read_as(&kinds[0], schema)))
        }
        kind => read_as(kind, schema),
    }
}

fn read_as(kind: &Value, schema: &'static Value) -> Schema {
    let count = |keyword: &str| {
        let number = schema[keyword].as_u64();
        number.map(|number| usize::try_from(number).expect("schemas count up to some hundreds"))
    };
    let texts = |keyword: &str| {
        let texts = schema[keyword].as_array().into_iter().flatten();
        texts.filter_map(Value::as_str).collect()
    };
    match kind.as_str() {
        Some("integer") => Schema::Integer {
            min: schema["minimum"].as_i64(),
            max: schema["maximum"].as_i64(),
        },
        // Handlers refuse negative numbers with an error of their own.
        Some("number") => Schema::Number {
            max: schema["maximum"].as_f64().unwrap_or(f64::MAX),
        },
        Some("string") => Schema::Text(Text {
            min_length: count("minLength").unwrap_or(0),
            max_length: count("maxLength"),
            pattern: schema["pattern"].as_str().map(Pattern::of),
            // What is accepted beyond the description is spelling.
            uuid: (schema["format"] == "uuid").then_some(UuidForm::Any),
            one_of: &[],
        }),
        Some("array") => Schema::Array {
            items: Box::new(read(&schema["items"])),
            min_items: count("minItems").unwrap_or(0),
            unique: schema["uniqueItems"] == true,
        },
        Some("object") => {
            let named = members(&schema["properties"]);
            let formed = members(&schema["patternProperties"]);
            Schema::Object(Object {
                properties: named.map(|(name, schema)| (name, read(schema))).collect(),
                patterns: formed
                    .map(|(form, schema)| (Pattern::of(form), read(schema)))
                    .collect(),
                additional: schema["additionalProperties"] != false,
                required: texts("required"),
                min_properties: count("minProperties").unwrap_or(0),
            })
        }
        other => panic!("a body of openapi.json has type {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keywords that `read` reads.
    const KEYWORDS: [(&str, &[&str]); 5] = [
        ("integer", &["minimum", "maximum"]),
        ("number", &["minimum", "maximum"]),
        ("string", &["minLength", "maxLength", "pattern", "format"]),
        ("array", &["items", "minItems", "uniqueItems"]),
        (
            "object",
            &[
                "properties",
                "patternProperties",
                "additionalProperties",
                "required",
                "minProperties",
            ],
        ),
    ];

    fn check(schema: &'static Value) {
        if let Some(target) = schema["$ref"].as_str() {
            return check(DOCUMENT.pointer(&target[1..]).unwrap());
        }
        let kind = schema["type"].as_str().or(schema["type"][0].as_str());
        let known = KEYWORDS.iter().find(|(name, _)| Some(*name) == kind);
        let known = known.unwrap().1;
        for (keyword, _) in members(schema) {
            assert!(
                known.contains(&keyword) || ["type", "title"].contains(&keyword),
                "{keyword} in {schema}"
            );
        }
        for inner in ["properties", "patternProperties"] {
            members(&schema[inner]).for_each(|(_, schema)| check(schema));
        }
        if kind == Some("array") {
            check(&schema["items"]);
        }
    }

    #[test]
    fn bodies_are_described_in_keywords_that_they_are_checked_against() {
        let mut count = 0;
        for (_, item) in members(&DOCUMENT["paths"]) {
            for (_, about) in members(item) {
                let body = &about["requestBody"]["content"]["application/json"]["schema"];
                let shapes = body["anyOf"].as_array();
                let shapes = shapes.map_or(std::slice::from_ref(body), Vec::as_slice);
                for shape in shapes.iter().filter(|shape| shape.is_object()) {
                    check(shape);
                    count += 1;
                }
            }
        }
        assert_eq!(count, SHAPES.len());
    }
}
