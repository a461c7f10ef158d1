//! Schemas of query strings, from the API's description, `openapi.json`. A query string is checked
//! as an object with the last value of each parameter.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::bodies::{DOCUMENT, read};
use super::pattern::Pattern;
use super::types::{Object, Schema};
use crate::http::wire::microversion::Microversion;

const CANDIDATES: &str = "/allocation_candidates";

/// The schema of a query by path and minor version.
static QUERIES: LazyLock<HashMap<&str, Vec<Schema>>> = LazyLock::new(|| {
    let paths = DOCUMENT["paths"].as_object().into_iter().flatten();
    let schemas = |path| {
        (0..=Microversion::MAX.minor())
            .map(|minor| query(path, minor))
            .collect()
    };
    paths
        .map(|(path, _)| (path.as_str(), schemas(path)))
        .collect()
});

/// The schema of the query of a `GET`.
pub(crate) fn query_of(path: &str, version: Microversion) -> &'static Schema {
    &QUERIES[path][usize::from(version.minor())]
}

fn query(path: &str, minor: u8) -> Schema {
    let mut query = Object {
        additional_properties: Some(false),
        ..Object::default()
    };
    let parameters = DOCUMENT["paths"][path]["get"]["parameters"].as_array();
    let known = parameters.into_iter().flatten();
    // `groups` is a placeholder for the keys of groups, which are added below.
    let known =
        known.filter(|parameter| since(parameter) <= minor && parameter["name"] != "groups");
    for parameter in known {
        let name = parameter["name"].as_str().unwrap_or_default();
        if parameter["required"] == true {
            query.required.push(name.to_owned());
        }
        let property = (name.to_owned(), value_of(parameter));
        query.properties.push(property);
    }
    match path {
        CANDIDATES if minor < 25 => query.required.push("resources".to_owned()),
        CANDIDATES => name_groups(&mut query, keys_of_groups(minor >= 33)),
        _ => {}
    }
    Schema::Object(query)
}

/// Turns the parameters of a group into patterns for any number of groups.
fn name_groups(query: &mut Object, keys: &GroupKeys) {
    for (prefix, form) in keys {
        let mut known = query.properties.iter();
        if let Some(at) = known.position(|(name, _)| name == prefix) {
            let (_, schema) = query.properties.remove(at);
            query.pattern_properties.push((form.clone(), schema));
        }
    }
}

/// The first minor version with a parameter, from the end of its description; 0 if it is as old as
/// its path.
fn since(parameter: &Value) -> u8 {
    let description = parameter["description"].as_str().unwrap_or_default();
    let since = description.rsplit_once("From microversion 1.");
    since.map_or(0, |(_, minor)| {
        let minor = minor.trim_end_matches('.').parse();
        minor.expect("a description ends in a minor version")
    })
}

/// The schema of one value of a parameter; repeatable parameters are described as lists.
fn value_of(parameter: &Value) -> Schema {
    let schema = &parameter["schema"];
    let mut one = schema["anyOf"].get(0).unwrap_or(schema).clone();
    if one["format"] == "uuid" {
        one["format"] = json!("hyphenated-uuid");
    }
    read(&one)
}

/// A group's parameters: the prefix and the pattern of each name.
type GroupKeys = [(&'static str, Pattern); 4];

/// The keys of groups in a version: the suffix is a number, or from 1.33 on a name.
pub(crate) fn group_keys(version: Microversion) -> &'static GroupKeys {
    keys_of_groups(version.from(33))
}

fn keys_of_groups(named: bool) -> &'static GroupKeys {
    fn keys(suffix: &str) -> GroupKeys {
        let prefixes = ["resources", "required", "member_of", "in_tree"];
        prefixes.map(|prefix| (prefix, Pattern::from(format!("^{prefix}({suffix})?$"))))
    }
    static NUMBERED: LazyLock<GroupKeys> = LazyLock::new(|| keys("[1-9][0-9]*"));
    static NAMED: LazyLock<GroupKeys> = LazyLock::new(|| keys("[a-zA-Z0-9_-]{1,64}"));
    if named { &NAMED } else { &NUMBERED }
}
