//! A schema as JSON Schema 2020-12, for the API's description.

use serde_json::{Map, Value, json};

use super::types::Schema;

impl Schema {
    /// The schema for the API's description. What is accepted beyond it is spelling: UUIDs
    /// without hyphens, a newline at the end of a name.
    pub(in crate::http) fn to_json_schema(&self) -> Value {
        match self {
            Self::Integer { min, max } => of_type(
                "integer",
                [
                    ("minimum", min.map(Value::from)),
                    ("maximum", max.map(Value::from)),
                ],
            ),
            Self::Number { max } => of_type(
                "number",
                [
                    // Handlers refuse negative numbers with an error of their own.
                    ("minimum", Some(json!(0))),
                    ("maximum", Some(json!(max))),
                ],
            ),
            Self::Text(text) => of_type(
                "string",
                [
                    (
                        "pattern",
                        text.pattern.as_ref().map(|form| json!(form.text())),
                    ),
                    ("minLength", at_least(text.min_length)),
                    ("maxLength", text.max_length.map(Value::from)),
                    ("format", text.uuid.map(|_| json!("uuid"))),
                    ("enum", unless_empty(text.one_of)),
                ],
            ),
            Self::Array {
                items,
                min_items,
                unique,
            } => of_type(
                "array",
                [
                    ("items", Some(items.to_json_schema())),
                    ("minItems", at_least(*min_items)),
                    ("uniqueItems", unique.then_some(json!(true))),
                ],
            ),
            Self::Object(object) => {
                let named = object
                    .properties
                    .iter()
                    .map(|(name, schema)| (*name, schema));
                let formed = object
                    .patterns
                    .iter()
                    .map(|(form, schema)| (form.text(), schema));
                let closed = !object.additional;
                of_type(
                    "object",
                    [
                        ("properties", members(named)),
                        ("patternProperties", members(formed)),
                        ("required", unless_empty(&object.required)),
                        ("minProperties", at_least(object.min_properties)),
                        ("additionalProperties", closed.then_some(json!(false))),
                    ],
                )
            }
            Self::Nullable(schema) => {
                let mut found = schema.to_json_schema();
                let kind = found["type"].take();
                found["type"] = json!([kind, "null"]);
                found
            }
        }
    }
}

/// A schema of the keywords that it has.
fn of_type<const N: usize>(kind: &str, keywords: [(&str, Option<Value>); N]) -> Value {
    let mut found = json!({ "type": kind });
    for (keyword, value) in keywords {
        if let Some(value) = value {
            found[keyword] = value;
        }
    }
    found
}

fn members<'a>(schemas: impl Iterator<Item = (&'a str, &'a Schema)>) -> Option<Value> {
    let found: Map<_, _> = schemas
        .map(|(name, schema)| (name.to_owned(), schema.to_json_schema()))
        .collect();
    (!found.is_empty()).then_some(found.into())
}

fn unless_empty(texts: &[&str]) -> Option<Value> {
    (!texts.is_empty()).then(|| json!(texts))
}

fn at_least(minimum: usize) -> Option<Value> {
    (minimum > 0).then(|| json!(minimum))
}
