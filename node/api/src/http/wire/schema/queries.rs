//! Query strings, as objects of the last value of each parameter.

use std::sync::LazyLock;

use super::pattern::Pattern;
use super::types::{Object, Schema, Text, UuidForm};
use crate::http::wire::microversion::Microversion;

fn hyphenated_uuid() -> Schema {
    Schema::Text(Text {
        uuid: Some(UuidForm::Hyphenated),
        ..Text::default()
    })
}

fn object(properties: Vec<(&'static str, Schema)>) -> Object {
    Object {
        properties,
        ..Object::default()
    }
}

/// The newest schema that is not newer than the version. Each is given with the minor version that
/// brought it, the newest first.
fn newest(schemas: &[(u8, Schema)], version: Microversion) -> &Schema {
    let fitting = schemas.iter().find(|(minor, _)| version.from(*minor));
    &fitting.or(schemas.last()).expect("there are schemas").1
}

/// `GET /resource_providers`.
pub(crate) fn providers_query(version: Microversion) -> &'static Schema {
    fn schema(minor: u8) -> (u8, Schema) {
        let all = [
            (0, "name", Schema::text()),
            (0, "uuid", hyphenated_uuid()),
            (3, "member_of", Schema::text()),
            (4, "resources", Schema::text()),
            (14, "in_tree", hyphenated_uuid()),
            (18, "required", Schema::text()),
        ];
        let known = all.into_iter().filter(|(since, ..)| *since <= minor);
        let properties = known.map(|(_, name, schema)| (name, schema)).collect();
        (minor, Schema::Object(object(properties)))
    }
    static SCHEMAS: LazyLock<Vec<(u8, Schema)>> =
        LazyLock::new(|| [18, 14, 4, 3, 0].map(schema).into());
    newest(&SCHEMAS, version)
}

/// `GET /traits`.
pub(crate) fn traits_query() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        Schema::Object(object(vec![
            ("name", Schema::text()),
            ("associated", Schema::text()),
        ]))
    });
    &SCHEMA
}

/// `GET /usages`.
pub(crate) fn usages_query(version: Microversion) -> &'static Schema {
    fn schema(with_type: bool) -> Schema {
        let mut properties = vec![
            ("project_id", Schema::text_of(1, 255)),
            ("user_id", Schema::text_of(1, 255)),
        ];
        if with_type {
            let name = Text {
                min_length: 1,
                max_length: Some(255),
                pattern: Some(Pattern::consumer_type_query()),
                ..Text::default()
            };
            properties.push(("consumer_type", Schema::Text(name)));
        }
        Schema::Object(Object {
            required: vec!["project_id"],
            ..object(properties)
        })
    }
    static FIRST: LazyLock<Schema> = LazyLock::new(|| schema(false));
    static TYPES: LazyLock<Schema> = LazyLock::new(|| schema(true));
    if version.from(38) { &TYPES } else { &FIRST }
}

/// `GET /allocation_candidates`.
pub(crate) fn candidates_query(version: Microversion) -> &'static Schema {
    static SCHEMAS: LazyLock<Vec<(u8, Schema)>> = LazyLock::new(|| {
        [36, 35, 33, 31, 25, 21, 17, 16, 10]
            .map(|minor| (minor, candidates(minor)))
            .into()
    });
    newest(&SCHEMAS, version)
}

/// A group's parameters: what their names begin with, and the form of these names.
type GroupKeys = [(&'static str, Pattern); 4];

/// The keys of groups at a version: the suffix is a number, or from 1.33 a name.
pub(crate) fn group_keys(version: Microversion) -> &'static GroupKeys {
    keys_of_groups(version.from(33))
}

fn keys_of_groups(named: bool) -> &'static GroupKeys {
    const PREFIXES: [&str; 4] = ["resources", "required", "member_of", "in_tree"];
    static NUMBERED: LazyLock<GroupKeys> =
        LazyLock::new(|| PREFIXES.map(|prefix| (prefix, Pattern::numbered_key(prefix))));
    static NAMED: LazyLock<GroupKeys> =
        LazyLock::new(|| PREFIXES.map(|prefix| (prefix, Pattern::named_key(prefix))));
    if named { &NAMED } else { &NUMBERED }
}

fn candidates(minor: u8) -> Schema {
    let mut found = Object::default();
    if minor >= 25 {
        let known = if minor >= 31 { 4 } else { 3 };
        let keys = keys_of_groups(minor >= 33).iter().take(known);
        found.patterns = keys
            .map(|(_, form)| (form.clone(), Schema::text()))
            .collect();
    } else {
        found.properties.push(("resources", Schema::text()));
        found.required.push("resources");
    }
    if minor >= 16 {
        let limit = Text {
            min_length: 1,
            pattern: Some(Pattern::positive()),
            ..Text::default()
        };
        found.properties.push(("limit", Schema::Text(limit)));
    }
    if minor >= 25 {
        let policy = Text {
            one_of: &["none", "isolate"],
            ..Text::default()
        };
        found
            .properties
            .push(("group_policy", Schema::Text(policy)));
    }
    for (since, until, name) in [
        (17, 25, "required"),
        (21, 25, "member_of"),
        (35, 99, "root_required"),
        (36, 99, "same_subtree"),
    ] {
        if (since..until).contains(&minor) {
            found.properties.push((name, Schema::text()));
        }
    }
    Schema::Object(found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::http::wire::schema::DOCUMENT;

    type SchemaOf = fn(Microversion) -> &'static Schema;

    /// The parameters of a query, each with the first minor version that has it.
    fn known(schema_of: SchemaOf) -> BTreeMap<String, u8> {
        let mut found = BTreeMap::new();
        for minor in 0..=Microversion::MAX.minor() {
            let Schema::Object(query) = schema_of(Microversion::new(minor)) else {
                panic!("a query is an object");
            };
            let names = query.properties.iter().map(|(name, _)| (*name).to_owned());
            let forms = query.patterns.iter().map(|(form, _)| form.text());
            let forms = forms
                .filter_map(|form| form[1..].split_once('('))
                .map(|(name, _)| name.to_owned());
            let groups = (!query.patterns.is_empty()).then(|| "groups".to_owned());
            for name in names.chain(forms).chain(groups) {
                found.entry(name).or_insert(minor);
            }
        }
        found
    }

    #[test]
    fn the_description_has_the_parameters_of_each_query_and_their_versions() {
        let queries: [(&str, SchemaOf); 4] = [
            ("/resource_providers", providers_query),
            ("/traits", |_| traits_query()),
            ("/usages", usages_query),
            ("/allocation_candidates", candidates_query),
        ];
        for (path, schema_of) in queries {
            let parameters = DOCUMENT["paths"][path]["get"]["parameters"]
                .as_array()
                .unwrap();
            let known = known(schema_of);
            assert_eq!(parameters.len(), known.len(), "{path}");
            for (name, since) in known {
                let parameter = parameters.iter().find(|one| one["name"] == name.as_str());
                let text = parameter.expect(&name)["description"].as_str().unwrap();
                let (_, first) = text
                    .rsplit_once("From microversion 1.")
                    .unwrap_or(("", "0."));
                let first = first.split_once('.').unwrap().0;
                assert_eq!(first, since.to_string(), "{path} {name}");
            }
        }
    }
}
