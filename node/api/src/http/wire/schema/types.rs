//! The types of schemas: the subset of JSON Schema that the API's description uses.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::pattern::Pattern;

/// A schema of a value.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "lowercase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub(crate) enum Schema {
    /// An integer, also if written like `5.0`.
    Integer {
        minimum: Option<i64>,
        maximum: Option<i64>,
    },
    /// A number with an upper bound.
    Number {
        maximum: f64,
        /// Handlers refuse negative numbers with an error of their own.
        #[serde(rename = "minimum")]
        _minimum: IgnoredAny,
    },
    Boolean {},
    /// A string with its constraints.
    String(Text),
    Array {
        items: Box<Schema>,
        #[serde(default)]
        min_items: usize,
        /// Handlers refuse longer lists with an error of their own.
        #[serde(default, rename = "maxItems")]
        _max_items: IgnoredAny,
        #[serde(default)]
        unique_items: bool,
    },
    Object(Object),
    /// The schema, or `null`.
    Nullable {
        schema: Box<Schema>,
    },
}

/// The constraints of a string. Lengths are in characters.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct Text {
    pub(super) min_length: usize,
    pub(super) max_length: Option<usize>,
    pub(super) pattern: Option<Pattern>,
    pub(super) format: Option<Format>,
    #[serde(rename = "enum")]
    pub(super) one_of: Vec<String>,
}

/// The permitted spellings of a UUID.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Format {
    /// Any spelling that upstream accepts.
    Uuid,
    /// Only with hyphens in the usual places.
    HyphenatedUuid,
}

/// The constraints of an object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct Object {
    #[serde(deserialize_with = "pairs")]
    pub(super) properties: Vec<(String, Schema)>,
    /// Schemas of members by patterns of their names.
    #[serde(deserialize_with = "pairs")]
    pub(super) pattern_properties: Vec<(Pattern, Schema)>,
    pub(super) required: Vec<String>,
    pub(super) min_properties: usize,
    pub(super) max_properties: Option<usize>,
    /// Whether other members are allowed; `None` means yes.
    pub(super) additional_properties: Option<bool>,
}

fn pairs<'de, K: From<String>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(K, Schema)>, D::Error> {
    let members = BTreeMap::<String, Schema>::deserialize(deserializer)?;
    let pairs = members
        .into_iter()
        .map(|(key, schema)| (key.into(), schema));
    Ok(pairs.collect())
}
