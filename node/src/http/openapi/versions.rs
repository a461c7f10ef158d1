//! What differs between microversions, as one description: a shape for each span of versions.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use super::components;
use crate::http::edge::route::Operation;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::schema::Schema;

/// From one minor version to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    first: u8,
    last: u8,
}

impl Span {
    /// The versions that have an operation.
    pub(super) fn of(operation: &Operation) -> Self {
        let newest = all().count() as u8 - 1;
        Self {
            first: operation.since,
            last: operation.until.min(newest),
        }
    }

    /// The versions from the earlier beginning to the later end.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }

    /// The oldest.
    pub(super) fn first(self) -> Microversion {
        version(self.first)
    }

    /// The newest.
    pub(super) fn last(self) -> Microversion {
        version(self.last)
    }

    fn minors(self) -> RangeInclusive<u8> {
        self.first..=self.last
    }
}

/// Every version there is.
pub(super) fn all() -> impl Iterator<Item = Microversion> {
    (0..=u8::MAX).map_while(parse)
}

fn parse(minor: u8) -> Option<Microversion> {
    Microversion::parse(Some(&format!("placement 1.{minor}"))).ok()
}

fn version(minor: u8) -> Microversion {
    parse(minor).expect("routes name versions that exist")
}

/// A shape and the versions it belongs to.
pub(super) type Shape = (Span, Value);

/// The different shapes within a span, oldest first.
pub(super) fn shapes(span: Span, shape_of: impl Fn(Microversion) -> Value) -> Vec<Shape> {
    let mut found: Vec<Shape> = Vec::new();
    for minor in span.minors() {
        let shape = shape_of(version(minor));
        match found.last_mut() {
            Some((span, last)) if *last == shape => span.last = minor,
            _ => found.push((
                Span {
                    first: minor,
                    last: minor,
                },
                shape,
            )),
        }
    }
    found
}

/// One schema for several shapes.
pub(super) fn any_of(mut shapes: Vec<Shape>) -> Value {
    if shapes.len() == 1 {
        return shapes.remove(0).1;
    }
    let titled: Vec<Value> = shapes
        .into_iter()
        .map(|(span, mut shape)| {
            shape["title"] = json!(format!("{} to {}", span.first(), span.last()));
            shape
        })
        .collect();
    json!({"anyOf": titled})
}

/// The parameters of a query string, of all versions within the span.
pub(super) fn query_parameters(
    schema_of: fn(Microversion) -> &'static Schema,
    span: Span,
) -> Vec<Value> {
    let query = |version| split_patterns(schema_of(version).to_json_schema());
    let mut names: Vec<String> = Vec::new();
    for minor in span.minors() {
        for name in members(&query(version(minor))).keys() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names
        .iter()
        .map(|name| {
            let found = shapes(span, |version| {
                members(&query(version))
                    .get(name)
                    .cloned()
                    .unwrap_or(Value::Null)
            });
            let found: Vec<Shape> = found
                .into_iter()
                .filter(|(_, shape)| !shape.is_null())
                .collect();
            let required = span.minors().all(|minor| {
                let required = &query(version(minor))["required"];
                required
                    .as_array()
                    .is_some_and(|names| names.contains(&json!(name)))
            });
            query_parameter(name, span, found, required)
        })
        .collect()
}

fn query_parameter(name: &str, span: Span, shapes: Vec<Shape>, required: bool) -> Value {
    let known = shapes
        .iter()
        .map(|(span, _)| *span)
        .reduce(Span::with)
        .expect("a name was found in some version");
    let mut description = components::about_query(name).to_owned();
    if known.first > span.first {
        description.push_str(&format!(" From microversion {}.", known.first()));
    }
    if known.last < span.last {
        description.push_str(&format!(" Until microversion {}.", known.last()));
    }
    let mut schema = any_of(shapes);
    if components::may_repeat(name) {
        schema = json!({"anyOf": [schema.clone(), {"type": "array", "items": schema}]});
    }
    json!({
        "name": name,
        "in": "query",
        "required": required,
        "style": "form",
        "explode": true,
        "description": description,
        "schema": schema,
    })
}

/// The name under which parameters are described whose names end in a group's suffix.
pub(super) const GROUPS: &str = "groups";

fn members(query: &Value) -> Map<String, Value> {
    query["properties"].as_object().cloned().unwrap_or_default()
}

/// Takes apart the names that may end in a suffix: a parameter without it, and one object, whose
/// members are parameters, for all that have one.
fn split_patterns(mut query: Value) -> Value {
    let Some(patterns) = query["patternProperties"].as_object().cloned() else {
        return query;
    };
    let mut suffixed = Map::new();
    for (form, schema) in patterns {
        if let Some((name, suffix)) = form.trim_start_matches('^').split_once('(') {
            query["properties"][name] = schema.clone();
            suffixed.insert(format!("^{name}({}", suffix.replace(")?$", ")$")), schema);
        }
    }
    query["properties"][GROUPS] = json!({
        "type": "object",
        "patternProperties": suffixed,
        "additionalProperties": false,
    });
    query
}
