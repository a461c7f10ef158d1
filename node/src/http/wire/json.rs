//! JSON as clients send it: members keep their order, of a repeated member the last counts, and
//! numbers keep whether they were written as integers, of any size.

use std::fmt;

use indexmap::IndexMap;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

use super::python;
use super::values::{Digits, Float};

/// How many bytes of a value are shown in an error. What requests usually carry is shown whole.
pub(in crate::http) const SHOWN_MAX: usize = 4096;

/// The text, cut off if it is too long to be shown.
pub(in crate::http) fn cut(mut text: String) -> String {
    if text.len() > SHOWN_MAX {
        text.truncate(text.floor_char_boundary(SHOWN_MAX));
        text.push_str("...");
    }
    text
}

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// Written without point and exponent, and not too large for `i64`.
    Int(i64),
    /// The digits of an integer that is too large for `i64`.
    BigInt(Box<str>),
    /// Written with point or exponent.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    Array(Vec<Json>),
    /// An object, in the order in which its members first came.
    Object(IndexMap<String, Json>),
}

impl Json {
    /// Reads a body of so many values at most, as each takes some hundred bytes of memory.
    ///
    /// # Errors
    /// Text that is not JSON: also `NaN` and `Infinity`, half surrogates, and nesting beyond 128.
    /// More values than that: an error in the data ([`serde_json::Error::is_data`]).
    pub(in crate::http) fn parse(most: usize, body: &[u8]) -> Result<Self, serde_json::Error> {
        let mut source = Source {
            numbers: Numbers { rest: body },
            values_left: most,
        };
        let mut deserializer = serde_json::Deserializer::from_slice(body);
        let json = JsonSeed(&mut source).deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(json)
    }

    /// The member of an object.
    pub(in crate::http) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.get(key),
            _ => None,
        }
    }

    /// The members of an object; of anything else, none.
    pub(in crate::http) fn members(&self) -> impl Iterator<Item = (&str, &Self)> {
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
    pub(in crate::http) fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    /// The text, if the value is one.
    pub(in crate::http) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, also if it was written like `5.0`; clipped to the range of `i64`.
    pub(in crate::http) fn integer(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::BigInt(digits) if digits.starts_with('-') => Some(i64::MIN),
            Self::BigInt(_) => Some(i64::MAX),
            Self::Float(value) if value.fract() == 0.0 => Some(*value as i64),
            _ => None,
        }
    }

    /// The number.
    pub(in crate::http) fn number(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::BigInt(digits) => digits.parse().ok(),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// The value as Python shows it, cut off if it is long.
    pub(in crate::http) fn repr(&self) -> String {
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
            Self::BigInt(digits) => shown.push_str(digits),
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

/// The numbers of a text as they are written, in their order. The text is JSON up to the number
/// that is asked for: the parser has just read it.
struct Numbers<'a> {
    rest: &'a [u8],
}

impl<'a> Numbers<'a> {
    fn next(&mut self) -> &'a str {
        loop {
            let (step, is_number) = match self.rest.first() {
                None => return "",
                Some(b'"') => (string_length(self.rest), false),
                Some(b'-' | b'0'..=b'9') => (number_length(self.rest), true),
                Some(_) => (1, false),
            };
            let (token, rest) = self.rest.split_at(step);
            self.rest = rest;
            if is_number {
                return str::from_utf8(token).unwrap_or_default();
            }
        }
    }
}

/// The length of the string that the text begins with, quotes included.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn number_length(text: &[u8]) -> usize {
    let ends = |byte: &u8| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    text.iter().position(ends).unwrap_or(text.len())
}

/// What is read, and how much more of it may come.
struct Source<'a> {
    numbers: Numbers<'a>,
    values_left: usize,
}

/// Makes a value, and looks up how its numbers are written.
struct JsonSeed<'s, 'a>(&'s mut Source<'a>);

impl<'de> DeserializeSeed<'de> for JsonSeed<'_, '_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        let left = self.0.values_left.checked_sub(1);
        self.0.values_left = left.ok_or_else(|| D::Error::custom("too many values"))?;
        deserializer.deserialize_any(self)
    }
}

impl JsonSeed<'_, '_> {
    fn number(self, value: f64) -> Json {
        let text = self.0.numbers.next();
        if text.contains(['.', 'e', 'E']) {
            return Json::Float(value);
        }
        text.parse()
            .map_or_else(|_| Json::BigInt(text.into()), Json::Int)
    }
}

impl<'de> Visitor<'de> for JsonSeed<'_, '_> {
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
        Ok(self.number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(self.number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(self.number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::Text(value))
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

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::BigInt(digits) => Digits(digits).serialize(serializer),
            Self::Float(value) => Float(*value).serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(members) => serializer.collect_map(members),
        }
    }
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
            assert!(parse(body.as_bytes()).is_err(), "{body}");
        }
        assert!(parse(b"\"\xff\"").is_err());
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
        assert!(parse(format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)).as_bytes()).is_err());
    }

    #[test]
    fn a_body_may_hold_so_many_values_and_no_more() {
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
    fn numbers_are_written_back_as_they_came() {
        let same = [
            "0",
            "-1",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775809",
            "340282000000000000000000000000000000000",
            "5.0",
            "3.40282e+38",
            r#"{"1":["2\"3",{"4\\":5e-324},-6.5],"seven":[true,1e+16]}"#,
        ];
        for text in same {
            let json = parse(text.as_bytes()).unwrap();
            assert_eq!(serde_json::to_string(&json).unwrap(), text);
        }
        for (text, written) in [
            ("-0", "0"),
            ("1E2", "100.0"),
            ("1e0", "1.0"),
            ("-0.0", "-0.0"),
        ] {
            let json = parse(text.as_bytes()).unwrap();
            assert_eq!(serde_json::to_string(&json).unwrap(), written);
        }
        let big = parse(b"18446744073709551616").unwrap();
        assert_eq!(big.number(), Some(18_446_744_073_709_551_616.0));
        assert_eq!(big.repr(), "18446744073709551616");
    }

    #[test]
    fn values_are_shown_as_python_shows_them() {
        let json = parse(br#"{"a": [null, true, 5.0, "x"]}"#).unwrap();
        assert_eq!(json.repr(), "{'a': [None, True, 5.0, 'x']}");
        let long = Json::Array(vec![Json::Text("x".repeat(5000)); 5000]);
        assert!(long.repr().len() < SHOWN_MAX + 10);
    }
}
