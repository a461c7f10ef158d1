//! JSON as clients send it: members keep their order, the last of repeated members is used, and a
//! number records whether it was written as an integer.

use std::fmt;

use indexmap::IndexMap;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number without point and exponent that fits `i64`.
    Int(i64),
    /// Any number that is not a [`Json::Int`].
    Float(f64),
    Text(String),
    Array(Vec<Json>),
    /// An object, with its members in the order of their first occurrence.
    #[serde(serialize_with = "write_members")]
    Object(IndexMap<String, Json>),
}

impl Json {
    /// Parses a body of at most `most` values. The number is limited, as each value takes about a
    /// hundred bytes of memory.
    ///
    /// # Errors
    /// The text is not JSON, which includes `NaN`, `Infinity`, lone surrogates, and more than 128
    /// levels. More than `most` values are an error in the data ([`serde_json::Error::is_data`]).
    pub(crate) fn parse(most: usize, body: &[u8]) -> Result<Self, serde_json::Error> {
        let mut values_left = most;
        let mut deserializer = serde_json::Deserializer::from_slice(body);
        let json = JsonSeed(&mut values_left).deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(json)
    }

    /// The member of an object.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.get(key),
            _ => None,
        }
    }

    /// The member of an object, or null.
    pub(crate) fn member(&self, key: &str) -> &Self {
        self.get(key).unwrap_or(&Self::Null)
    }

    /// The members of an object; empty for any other value.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &Self)> + Clone {
        let members = match self {
            Self::Object(members) => Some(members),
            _ => None,
        };
        let members = members.into_iter().flatten();
        members.map(|(key, value)| (key.as_str(), value))
    }

    /// The items of a list; empty for any other value.
    pub(crate) fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    /// The text; `None` for any other value.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether this is `true`.
    pub(crate) fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    /// The integer, also if written like `5.0`; clamped to the range of `i64`.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Float(value) if value.fract() == 0.0 => Some(*value as i64),
            _ => None,
        }
    }

    /// The number; `None` for any other value.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }
}

/// Deserializes a value and counts it against the remaining limit.
struct JsonSeed<'a>(&'a mut usize);

impl<'de> DeserializeSeed<'de> for JsonSeed<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        let left = self.0.checked_sub(1);
        *self.0 = left.ok_or_else(|| D::Error::custom("too many values"))?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonSeed<'_> {
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

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(JsonSeed(&mut *self.0))? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members = IndexMap::new();
        while let Some(key) = map.next_key()? {
            members.insert(key, map.next_value_seed(JsonSeed(&mut *self.0))?);
        }
        Ok(Json::Object(members))
    }
}

fn write_members<S: Serializer>(
    members: &IndexMap<String, Json>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &[u8]) -> Result<Json, serde_json::Error> {
        Json::parse(usize::MAX, body)
    }

    #[test]
    fn members_keep_their_order_and_the_last_of_two_counts() {
        let json = parse(br#"{"b": 1, "a": 2, "b": 3}"#).unwrap();
        let members: Vec<_> = json
            .members()
            .map(|(key, value)| (key, value.integer()))
            .collect();
        assert_eq!(members, [("b", Some(3)), ("a", Some(2))]);
    }

    #[test]
    fn text_that_is_not_json_is_refused() {
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
            assert!(parse(body.as_bytes()).is_err(), "{body}");
        }
        assert!(parse(b"\"\xff\"").is_err());
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
        assert!(parse(format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)).as_bytes()).is_err());
    }

    #[test]
    fn values_of_a_body_are_limited() {
        let body = br#"{"a": [1, null, {"b": "x"}]}"#;
        assert!(Json::parse(6, body).is_ok());
        assert!(Json::parse(5, body).unwrap_err().is_data());
        assert!(!Json::parse(1, b"{").unwrap_err().is_data());
    }

    #[test]
    fn integers_may_be_written_with_a_point() {
        let integer = |text: &str| parse(text.as_bytes()).unwrap().integer();
        assert_eq!(integer("5.0"), Some(5));
        assert_eq!(integer("5.5"), None);
        assert_eq!(integer("true"), None);
        assert_eq!(integer("99999999999999999999"), Some(i64::MAX));
        assert_eq!(integer("-99999999999999999999"), Some(i64::MIN));
    }

    #[test]
    fn numbers_are_written_back_with_the_same_value() {
        for text in ["0", "-1", "9223372036854775807", "5.0", "-6.5", "5e-324"] {
            let json = parse(text.as_bytes()).unwrap();
            assert_eq!(serde_json::to_string(&json).unwrap(), text);
        }
        for (text, value) in [
            ("9223372036854775808", 9223372036854775808.0),
            ("1E2", 100.0),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap(), Json::Float(value));
        }
    }
}
