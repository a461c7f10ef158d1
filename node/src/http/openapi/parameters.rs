//! The parameters of paths and of query strings.

use serde_json::{Map, Value, json};

use super::versions::{Shape, Span, any_of, shapes, version};
use crate::http::wire::microversion::Microversion;
use crate::http::wire::schema::Schema;

/// The names in the braces of a path.
pub(super) fn names_in(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// What stands in a path.
pub(super) fn of_path(name: &str) -> Value {
    let (description, schema) = match name {
        "uuid" => ("The provider.", uuid()),
        "consumer_uuid" => ("The consumer.", uuid()),
        "resource_class" => ("The resource class.", upper()),
        _ => ("The name.", upper()),
    };
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": description,
        "schema": schema,
    })
}

fn uuid() -> Value {
    json!({"type": "string", "format": "uuid"})
}

fn upper() -> Value {
    json!({"type": "string", "pattern": "^[A-Z0-9_]+$", "maxLength": 255})
}

/// The parameters of a query string, of all versions within the span.
pub(super) fn of_query(schema_of: fn(Microversion) -> &'static Schema, span: Span) -> Vec<Value> {
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
    let mut description = about_query(name).to_owned();
    if known.first() > span.first() {
        description.push_str(&format!(" From microversion {}.", known.first()));
    }
    if known.last() < span.last() {
        description.push_str(&format!(" Until microversion {}.", known.last()));
    }
    let mut schema = any_of(shapes);
    if may_repeat(name) {
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
const GROUPS: &str = "groups";

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

/// What a parameter of a query string is for.
fn about_query(name: &str) -> &'static str {
    match name {
        "name" => {
            "Of traits: `in:A,B` or `startswith:PREFIX`, in either case. Of providers: the name."
        }
        "uuid" => "The provider's UUID.",
        "associated" => "`true`: traits that some provider has; `false`: traits that none has.",
        "in_tree" => "Providers of the tree to which this provider belongs.",
        "resources" => "`CLASS:AMOUNT`, several with commas.",
        "required" => {
            "Traits, several with commas; `!T` must be absent (1.22). `in:A,B`: one of them (1.39; \
             then it may be given more than once)."
        }
        "member_of" => {
            "An aggregate, or `in:A,B` for one of several. `!A` and `!in:A,B`: none of them (1.32). \
             May be given more than once from 1.24."
        }
        "project_id" => "Whose usages.",
        "user_id" => "Only what this user takes.",
        "consumer_type" => {
            "Only consumers of this type; `all`: all in one sum; `unknown`: those without."
        }
        "limit" => "At most so many candidates.",
        "group_policy" => {
            "Whether several suffixed groups may be met by one provider. Needed from two on."
        }
        "root_required" => "Traits that the root of the tree has; `!T`: does not have.",
        "same_subtree" => {
            "Suffixes, with commas, of groups to be met below one of their providers."
        }
        GROUPS => {
            "Not a parameter of this name, but any number of parameters `resourcesS`, `requiredS`, \
             `member_ofS` and `in_treeS`, where S, the suffix, names a group that one provider meets: \
             a number from 1 on; from 1.33 any 64 letters, digits, `_` and `-`."
        }
        _ => "",
    }
}

/// Whether a parameter of a query string may be given more than once.
fn may_repeat(name: &str) -> bool {
    matches!(name, "required" | "member_of")
}
