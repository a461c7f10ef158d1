//! The types of schemas: JSON Schema, as far as the API's description uses it.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::pattern::Pattern;

/// What a value must look like.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "lowercase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub(crate) enum Schema {
    /// An integer, also one written like `5.0`.
    Integer {
        minimum: Option<i64>,
        maximum: Option<i64>,
    },
    /// A number.
    Number {
        maximum: f64,
        /// Handlers refuse negative numbers with an error of their own.
        #[serde(rename = "minimum")]
        _minimum: IgnoredAny,
    },
    /// Text.
    String(Text),
    /// A list.
    Array {
        items: Box<Schema>,
        #[serde(default)]
        min_items: usize,
        #[serde(default)]
        unique_items: bool,
    },
    /// An object.
    Object(Object),
    /// The same, or `null`.
    Nullable { schema: Box<Schema> },
}

/// What text must look like. Lengths are in characters.
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

/// How a UUID may be spelled.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Format {
    /// In any way.
    Uuid,
    /// With its hyphens in their places.
    HyphenatedUuid,
}

/// What an object must look like.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct Object {
    #[serde(deserialize_with = "pairs")]
    pub(super) properties: Vec<(String, Schema)>,
    /// Members by the form of their names.
    #[serde(deserialize_with = "pairs")]
    pub(super) pattern_properties: Vec<(Pattern, Schema)>,
    pub(super) required: Vec<String>,
    pub(super) min_properties: usize,
    /// Whether there may be other members; `None`: yes.
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
