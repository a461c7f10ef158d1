//! A schema as the JSON Schema that the API's description shows.

use serde_json::{Map, Value, json};

use super::kind::{Object, Schema, Text};

impl Schema {
    /// The schema in JSON Schema 2020-12. What is accepted beyond it is spelling: UUIDs without
    /// hyphens, a newline at the end of a name.
    pub(in crate::http) fn to_json_schema(&self) -> Value {
        match self {
            Self::Integer { min, max } => {
                let mut found = Map::from_iter([("type".to_owned(), json!("integer"))]);
                put(&mut found, "minimum", *min);
                put(&mut found, "maximum", *max);
                found.into()
            }
            // Handlers refuse negative numbers with an error of their own.
            Self::Number { max } => json!({"type": "number", "minimum": 0, "maximum": max}),
            Self::Text(text) => text_schema(text),
            Self::Array {
                items,
                min_items,
                unique,
            } => {
                let mut found = Map::from_iter([
                    ("type".to_owned(), json!("array")),
                    ("items".to_owned(), items.to_json_schema()),
                ]);
                put(&mut found, "minItems", at_least(*min_items));
                put(&mut found, "uniqueItems", unique.then_some(true));
                found.into()
            }
            Self::Object(object) => object_schema(object),
            Self::Nullable(schema) => {
                let mut found = schema.to_json_schema();
                if let Some(kind) = found.get_mut("type") {
                    *kind = json!([kind.take(), "null"]);
                }
                found
            }
        }
    }
}

fn put(schema: &mut Map<String, Value>, keyword: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        schema.insert(keyword.to_owned(), value.into());
    }
}

fn at_least(minimum: usize) -> Option<usize> {
    Some(minimum).filter(|minimum| *minimum > 0)
}

fn text_schema(text: &Text) -> Value {
    let mut found = Map::from_iter([("type".to_owned(), json!("string"))]);
    put(&mut found, "minLength", at_least(text.min_length));
    put(&mut found, "maxLength", text.max_length);
    put(
        &mut found,
        "pattern",
        text.pattern.map(|form| form.text().into_owned()),
    );
    put(&mut found, "format", text.uuid.map(|_| "uuid"));
    put(
        &mut found,
        "enum",
        Some(text.one_of.to_vec()).filter(|values| !values.is_empty()),
    );
    found.into()
}

fn object_schema(object: &Object) -> Value {
    let mut found = Map::from_iter([("type".to_owned(), json!("object"))]);
    let properties = object
        .properties
        .iter()
        .map(|(name, schema)| ((*name).to_owned(), schema.to_json_schema()));
    let patterns = object
        .patterns
        .iter()
        .map(|(form, schema)| (form.text().into_owned(), schema.to_json_schema()));
    let members = |members: Map<String, Value>| Some(members).filter(|found| !found.is_empty());
    put(&mut found, "properties", members(properties.collect()));
    put(&mut found, "patternProperties", members(patterns.collect()));
    put(
        &mut found,
        "additionalProperties",
        (!object.additional).then_some(false),
    );
    put(
        &mut found,
        "required",
        Some(object.required.clone()).filter(|names| !names.is_empty()),
    );
    put(&mut found, "minProperties", at_least(object.min_properties));
    found.into()
}
