//! A schema as JSON Schema 2020-12: for the API's description, and for errors.

use indexmap::IndexMap;
use serde_json::Value;

use super::types::{Keyword, Object, Schema, ShownAs, Text};
use crate::http::wire::json::Json;

/// Who reads the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Programs, in the API's description.
    Document,
    /// The client whose body does not fit. Errors show the reference implementation's schemas, in
    /// the order of keywords they have there.
    Error,
}

impl Schema {
    /// The schema for the API's description. What is accepted beyond it is spelling: UUIDs
    /// without hyphens, a newline at the end of a name.
    pub(in crate::http) fn to_json_schema(&self) -> Value {
        serde_json::to_value(self.describe(Reader::Document))
            .expect("a schema has text as keys and finite numbers")
    }

    /// The schema as errors show it.
    pub(super) fn shown(&self) -> Json {
        self.describe(Reader::Error)
    }

    fn describe(&self, reader: Reader) -> Json {
        let for_error = reader == Reader::Error;
        match self {
            Self::Integer { min, max } => Keywords::of_type(text("integer"))
                .with("maximum", max.map(Json::Int))
                .with("minimum", min.map(Json::Int))
                .done(),
            Self::Number { max } => Keywords::of_type(text("number"))
                .with("maximum", Some(Json::Float(*max)))
                // Handlers refuse negative numbers with an error of their own.
                .with("minimum", (!for_error).then_some(Json::Int(0)))
                .done(),
            Self::Text(text) => text.describe(reader),
            Self::Array {
                items,
                min_items,
                unique,
            } => Keywords::of_type(text("array"))
                .with("minItems", at_least(*min_items))
                .with("items", Some(items.describe(reader)))
                .with("uniqueItems", unique.then_some(Json::Bool(true)))
                .done(),
            Self::Object(object) => object.describe(reader),
            Self::IntegerOrNull => Keywords::of_type(texts(&["integer", "null"]))
                .with(
                    "additionalProperties",
                    for_error.then_some(Json::Bool(false)),
                )
                .done(),
            Self::Nullable(schema) => nullable(schema.describe(reader), reader),
        }
    }
}

fn nullable(otherwise: Json, reader: Reader) -> Json {
    if reader == Reader::Error {
        let null = Keywords::of_type(text("null")).done();
        let choices = Json::Array(vec![otherwise, null]);
        return Keywords::default().with("anyOf", Some(choices)).done();
    }
    let mut found = otherwise;
    if let Json::Object(keywords) = &mut found
        && let Some(kind) = keywords.get_mut("type")
    {
        let without = std::mem::replace(kind, Json::Null);
        *kind = Json::Array(vec![without, text("null")]);
    }
    found
}

impl Text {
    fn describe(&self, reader: Reader) -> Json {
        let shown_as = match reader {
            Reader::Document => ShownAs::Text,
            Reader::Error => self.shown_as,
        };
        let kind = match shown_as {
            ShownAs::Text => text("string"),
            ShownAs::ListedText => texts(&["string"]),
            ShownAs::PositiveOrText => texts(&["integer", "string"]),
        };
        let positive = shown_as == ShownAs::PositiveOrText;
        let choices = Some(self.one_of).filter(|choices| !choices.is_empty());
        Keywords::of_type(kind)
            .with(
                "pattern",
                self.pattern.as_ref().map(|form| text(form.text())),
            )
            .with("minimum", positive.then_some(Json::Int(1)))
            .with("minLength", at_least(self.min_length))
            .with("maxLength", self.max_length.map(count))
            .with("format", self.uuid.map(|_| text("uuid")))
            .with("enum", choices.map(texts))
            .done()
    }
}

impl Object {
    fn describe(&self, reader: Reader) -> Json {
        let start = Keywords::of_type(text("object"));
        let keywords = self.order.keywords().into_iter();
        let all = keywords.fold(start, |found, keyword| match keyword {
            Keyword::Count => found.with("minProperties", self.count(reader)),
            Keyword::Properties => {
                let named = self.properties.iter();
                let named = named.map(|(name, schema)| ((*name).to_owned(), schema));
                found.with("properties", members(named, reader))
            }
            Keyword::Patterns => {
                let formed = self.patterns.iter();
                let formed = formed.map(|(form, schema)| (form.text().to_owned(), schema));
                found.with("patternProperties", members(formed, reader))
            }
            Keyword::Required => {
                let names = Some(&self.required[..]).filter(|names| !names.is_empty());
                found.with("required", names.map(texts))
            }
            Keyword::Additional => found.with(
                "additionalProperties",
                (!self.additional).then_some(Json::Bool(false)),
            ),
        });
        all.done()
    }

    fn count(&self, reader: Reader) -> Option<Json> {
        let min = self.min_properties?;
        (min > 0 || reader == Reader::Error).then(|| count(min))
    }
}

fn members<'a>(
    schemas: impl Iterator<Item = (String, &'a Schema)>,
    reader: Reader,
) -> Option<Json> {
    let found: IndexMap<_, _> = schemas
        .map(|(name, schema)| (name, schema.describe(reader)))
        .collect();
    (!found.is_empty()).then_some(Json::Object(found))
}

/// A schema's keywords in order.
#[derive(Default)]
struct Keywords(IndexMap<String, Json>);

impl Keywords {
    fn of_type(kind: Json) -> Self {
        Self::default().with("type", Some(kind))
    }

    fn with(mut self, keyword: &str, value: Option<Json>) -> Self {
        self.0
            .extend(value.map(|value| (keyword.to_owned(), value)));
        self
    }

    fn done(self) -> Json {
        Json::Object(self.0)
    }
}

fn text(text: &str) -> Json {
    Json::Text(text.to_owned())
}

fn texts(all: &[&str]) -> Json {
    Json::Array(all.iter().copied().map(text).collect())
}

fn count(value: usize) -> Json {
    Json::Int(i64::try_from(value).expect("schemas count up to some hundreds"))
}

fn at_least(minimum: usize) -> Option<Json> {
    (minimum > 0).then(|| count(minimum))
}
