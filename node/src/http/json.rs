//! JSON as clients send it: members keep their order, of a repeated member the last counts, and
//! numbers keep whether they were written as integers.

use std::fmt;

use indexmap::IndexMap;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

use super::python;

/// How many bytes of a value are shown in an error. What requests usually carry is shown whole.
pub(super) const SHOWN_MAX: usize = 4096;

/// The text, cut off if it is too long to be shown.
pub(super) fn cut(mut text: String) -> String {
    if text.len() > SHOWN_MAX {
        text.truncate(text.floor_char_boundary(SHOWN_MAX));
        text.push_str("...");
    }
    text
}

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// Written without point and exponent, and not too large for `i64`.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    Array(Vec<Json>),
    /// An object, in the order in which its members first came.
    Object(IndexMap<String, Json>),
}

impl Json {
    /// Reads a body.
    ///
    /// # Errors
    /// Text that is not JSON: also `NaN` and `Infinity`, half surrogates, and nesting beyond 128.
    pub(super) fn parse(body: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }

    /// The member of an object.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.get(key),
            _ => None,
        }
    }

    /// The members of an object; of anything else, none.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &Self)> {
        let members = match self {
            Self::Object(members) => Some(members),
            _ => None,
        };
        members
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str(), value))
    }

    /// The items of a list; of anything else, none.
    pub(super) fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    /// The text, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, also if it was written like `5.0`; clipped to the range of `i64`.
    pub(super) fn integer(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Float(value) if value.fract() == 0.0 => Some(*value as i64),
            _ => None,
        }
    }

    /// The number.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// The value as Python shows it, cut off if it is long.
    pub(super) fn repr(&self) -> String {
        let mut shown = String::new();
        self.write_repr(&mut shown);
        cut(shown)
    }

    fn write_repr(&self, shown: &mut String) {
        if shown.len() > SHOWN_MAX {
            return;
        }
        match self {
            Self::Null => shown.push_str("None"),
            Self::Bool(true) => shown.push_str("True"),
            Self::Bool(false) => shown.push_str("False"),
            Self::Int(value) => shown.push_str(&value.to_string()),
            Self::Float(value) => shown.push_str(&python::float(*value)),
            Self::Text(text) => {
                let end = text
                    .char_indices()
                    .nth(SHOWN_MAX)
                    .map_or(text.len(), |(end, _)| end);
                shown.push_str(&python::repr(&text[..end]));
            }
            Self::Array(items) => {
                shown.push('[');
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        shown.push_str(", ");
                    }
                    item.write_repr(shown);
                    if shown.len() > SHOWN_MAX {
                        return;
                    }
                }
                shown.push(']');
            }
            Self::Object(members) => {
                shown.push('{');
                for (position, (key, value)) in members.iter().enumerate() {
                    if position > 0 {
                        shown.push_str(", ");
                    }
                    shown.push_str(&python::repr(key));
                    shown.push_str(": ");
                    value.write_repr(shown);
                    if shown.len() > SHOWN_MAX {
                        return;
                    }
                }
                shown.push('}');
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(i64::try_from(value).map_or(Json::Float(value as f64), Json::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members = IndexMap::new();
        while let Some((key, value)) = map.next_entry()? {
            members.insert(key, value);
        }
        Ok(Json::Object(members))
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(members) => serializer.collect_map(members),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_the_last_of_two_counts() {
        let json = Json::parse(br#"{"b": 1, "a": 2, "b": 3}"#).unwrap();
        let members: Vec<_> = json
            .members()
            .map(|(key, value)| (key, value.integer()))
            .collect();
        assert_eq!(members, [("b", Some(3)), ("a", Some(2))]);
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for body in [
            "",
            "{",
            "NaN",
            "[Infinity]",
            "{\"a\": -Infinity}",
            "\"\\ud800\"",
            "{'a': 1}",
            "1e999",
            "\u{feff}1",
        ] {
            assert!(Json::parse(body.as_bytes()).is_err(), "{body}");
        }
        assert!(Json::parse(b"\"\xff\"").is_err());
        assert!(Json::parse("[".repeat(100_000).as_bytes()).is_err());
        assert!(
            Json::parse(format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)).as_bytes())
                .is_err()
        );
    }

    #[test]
    fn integers_may_be_written_with_a_point() {
        let integer = |text: &str| Json::parse(text.as_bytes()).unwrap().integer();
        assert_eq!(integer("5.0"), Some(5));
        assert_eq!(integer("5.5"), None);
        assert_eq!(integer("true"), None);
        assert_eq!(integer("99999999999999999999"), Some(i64::MAX));
        assert_eq!(integer("-99999999999999999999"), Some(i64::MIN));
    }

    #[test]
    fn values_are_shown_as_python_shows_them() {
        let json = Json::parse(br#"{"a": [null, true, 5.0, "x"]}"#).unwrap();
        assert_eq!(json.repr(), "{'a': [None, True, 5.0, 'x']}");
        let long = Json::Array(vec![Json::Text("x".repeat(5000)); 5000]);
        assert!(long.repr().len() < SHOWN_MAX + 10);
    }
}
