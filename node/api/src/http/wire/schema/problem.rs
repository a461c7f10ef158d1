//! What is wrong with a value, in the phrases of JSON Schema validators that clients look for.

use std::fmt;

use crate::http::wire::json::Json;

/// How many bytes of a client's value are shown.
const SHOWN_MAX: usize = 256;

/// Why a value does not fit its schema.
#[derive(Debug)]
pub(crate) struct Problem {
    /// What is wrong, and what would be right.
    message: String,
    /// The keyword of the schema that refuses the value.
    keyword: &'static str,
    /// Where the value is: `/name/of/member`; empty at the top.
    path: String,
    /// Where the schema is: `['properties']['name']`.
    schema: String,
}

impl Problem {
    /// A problem at the top.
    pub(super) fn new(keyword: &'static str, message: String) -> Self {
        Self {
            message,
            keyword,
            path: String::new(),
            schema: String::new(),
        }
    }

    /// The same problem of a value that may be `null` as well.
    pub(super) fn and_not_null(mut self) -> Self {
        self.message.push_str(", and not null");
        self
    }

    /// The same problem, seen from the list or object that has the value as `name` and the schema
    /// at `schema`.
    pub(super) fn below(self, name: &str, schema: &str) -> Self {
        Self {
            path: format!("/{name}{}", self.path),
            schema: format!("{schema}{}", self.schema),
            ..self
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.path.is_empty() {
            write!(f, ", at {}", self.path)?;
        }
        let (keyword, schema) = (self.keyword, &self.schema);
        write!(f, ". Failed validating '{keyword}' in schema{schema}")
    }
}

/// A value as errors show it: JSON, but text in single quotes.
pub(super) fn shown(value: &Json) -> String {
    match value {
        Json::Text(text) => quoted(text),
        other => cut(&serde_json::to_string(other).expect("keys are text, numbers finite")),
    }
}

/// Text in single quotes.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", cut(text))
}

/// Texts in single quotes, with commas between.
pub(super) fn all_quoted<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(quoted).collect();
    quoted.join(", ")
}

/// The text without what goes beyond the bytes that are shown.
pub(super) fn cut(text: &str) -> String {
    if text.len() <= SHOWN_MAX {
        return text.to_owned();
    }
    format!("{}...", &text[..text.floor_char_boundary(SHOWN_MAX)])
}
