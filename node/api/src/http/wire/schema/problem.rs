//! Validation errors, in the phrases of JSON Schema validators that clients match on.

use std::fmt;

use crate::http::wire::json::Json;

/// Maximum length in bytes of a client's value in an error.
const SHOWN_MAX: usize = 256;

/// The reason why a value does not match its schema.
#[derive(Debug)]
pub(crate) struct Problem {
    /// The error and the valid form.
    message: String,
    /// The keyword of the schema that rejects the value.
    keyword: &'static str,
    /// Path to the value: `/name/of/member`; empty at the top.
    path: String,
    /// Path to the schema: `['properties']['name']`.
    schema: String,
}

impl Problem {
    /// An error at the top level.
    pub(super) fn new(keyword: &'static str, message: String) -> Self {
        Self {
            message,
            keyword,
            path: String::new(),
            schema: String::new(),
        }
    }

    /// The same error for a value that may also be `null`.
    pub(super) fn and_not_null(mut self) -> Self {
        self.message.push_str(", and not null");
        self
    }

    /// The same error as seen from the parent, which has the value as `name` and the schema at
    /// `schema`.
    pub(super) fn in_parent(self, name: &str, schema: &str) -> Self {
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

/// A value as errors show it: JSON, but with strings in single quotes.
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

/// Texts in single quotes, separated by commas.
pub(super) fn all_quoted<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(quoted).collect();
    quoted.join(", ")
}

/// Truncates the text to [`SHOWN_MAX`] bytes.
pub(super) fn cut(text: &str) -> String {
    if text.len() <= SHOWN_MAX {
        return text.to_owned();
    }
    format!("{}...", &text[..text.floor_char_boundary(SHOWN_MAX)])
}
