//! Schemas, and what can be wrong.

use std::fmt;

use super::pattern::Pattern;
use crate::http::json::Json;
use crate::http::python;

/// What a value must look like.
#[derive(Debug, Clone)]
pub(in crate::http) enum Schema {
    /// An integer, also one written like `5.0`.
    Integer {
        /// At least this.
        min: Option<i64>,
        /// At most this.
        max: Option<i64>,
    },
    /// A number.
    Number {
        /// At most this.
        max: f64,
    },
    /// Text.
    Text(Text),
    /// A list.
    Array {
        /// What each item looks like.
        items: Box<Schema>,
        /// At least so many.
        min_items: usize,
        /// No two alike.
        unique: bool,
    },
    /// An object.
    Object(Object),
    /// The same, or `null`.
    Nullable(Box<Schema>),
}

/// What text must look like.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::http) struct Text {
    /// At least so many characters.
    pub(super) min_length: usize,
    /// At most so many characters.
    pub(super) max_length: Option<usize>,
    /// This form.
    pub(super) pattern: Option<Pattern>,
    /// A UUID.
    pub(super) uuid: Option<UuidForm>,
    /// One of these.
    pub(super) one_of: &'static [&'static str],
}

/// How a UUID may be spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum UuidForm {
    /// In any way.
    Any,
    /// With its hyphens in their places.
    Hyphenated,
}

/// What an object must look like.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct Object {
    /// Members by name.
    pub(super) properties: Vec<(&'static str, Schema)>,
    /// Members by the form of their names.
    pub(super) patterns: Vec<(Pattern, Schema)>,
    /// Whether there may be others.
    pub(super) additional: bool,
    /// Members that must be there.
    pub(super) required: Vec<&'static str>,
    /// At least so many members.
    pub(super) min_properties: usize,
}

/// What is wrong with a value, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct Problem {
    message: String,
    keyword: &'static str,
    schema_path: String,
    path: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}\n\nFailed validating '{}' in schema{}\n\nOn instance",
            self.message, self.keyword, self.schema_path
        )?;
        for step in self.path.iter().rev() {
            match step {
                Step::Key(key) => write!(f, "[{}]", python::repr(key))?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

fn problem(keyword: &'static str, message: String) -> Problem {
    Problem {
        message,
        keyword,
        schema_path: String::new(),
        path: Vec::new(),
    }
}

impl Problem {
    fn below(mut self, step: Step, schema: &str) -> Self {
        self.path.push(step);
        self.schema_path.insert_str(0, schema);
        self
    }
}

/// Keeps the problem that lies nearest to the top: the more of a value is wrong, the earlier the
/// client should hear of it.
fn nearer(best: Option<Problem>, found: Option<Problem>) -> Option<Problem> {
    match (best, found) {
        (Some(best), Some(found)) if found.path.len() < best.path.len() => Some(found),
        (Some(best), _) => Some(best),
        (None, found) => found,
    }
}

impl Schema {
    /// Any text.
    pub(super) fn text() -> Self {
        Self::Text(Text::default())
    }

    /// Text of `min` to `max` characters.
    pub(super) fn text_of(min: usize, max: usize) -> Self {
        Self::Text(Text {
            min_length: min,
            max_length: Some(max),
            ..Text::default()
        })
    }

    /// A UUID in any spelling.
    pub(super) fn uuid() -> Self {
        Self::Text(Text {
            uuid: Some(UuidForm::Any),
            ..Text::default()
        })
    }

    /// Any integer.
    pub(super) fn integer() -> Self {
        Self::Integer {
            min: None,
            max: None,
        }
    }

    /// An integer of at least `min`.
    pub(super) fn integer_from(min: i64) -> Self {
        Self::Integer {
            min: Some(min),
            max: None,
        }
    }

    /// The worst that is wrong with a value.
    pub(in crate::http) fn check(&self, value: &Json) -> Option<Problem> {
        match self {
            Self::Nullable(_) if *value == Json::Null => None,
            Self::Nullable(schema) => schema.check(value),
            Self::Integer { min, max } => check_integer(value, *min, *max),
            Self::Number { max } => check_number(value, *max),
            Self::Text(text) => text.check(value),
            Self::Array {
                items,
                min_items,
                unique,
            } => check_array(value, items, *min_items, *unique),
            Self::Object(object) => object.check(value),
        }
    }
}

fn wrong_type(value: &Json, expected: &str) -> Option<Problem> {
    Some(problem(
        "type",
        format!("{} is not of type '{expected}'", value.repr()),
    ))
}

fn check_integer(value: &Json, min: Option<i64>, max: Option<i64>) -> Option<Problem> {
    let Some(integer) = value.integer() else {
        return wrong_type(value, "integer");
    };
    if let Some(min) = min.filter(|min| integer < *min) {
        let message = format!("{} is less than the minimum of {min}", value.repr());
        return Some(problem("minimum", message));
    }
    if let Some(max) = max.filter(|max| integer > *max) {
        let message = format!("{} is greater than the maximum of {max}", value.repr());
        return Some(problem("maximum", message));
    }
    None
}

fn check_number(value: &Json, max: f64) -> Option<Problem> {
    let Some(number) = value.number() else {
        return wrong_type(value, "number");
    };
    (number > max).then(|| {
        problem(
            "maximum",
            format!("{} is greater than the maximum of {max:e}", value.repr()),
        )
    })
}

fn check_array(value: &Json, items: &Schema, min_items: usize, unique: bool) -> Option<Problem> {
    let Json::Array(values) = value else {
        return wrong_type(value, "array");
    };
    if values.len() < min_items {
        return Some(problem(
            "minItems",
            format!("{} should be non-empty", value.repr()),
        ));
    }
    if unique && !all_differ(values) {
        return Some(problem(
            "uniqueItems",
            format!("{} has non-unique elements", value.repr()),
        ));
    }
    values.iter().enumerate().fold(None, |best, (index, item)| {
        let found = items
            .check(item)
            .map(|problem| problem.below(Step::Index(index), "['items']"));
        nearer(best, found)
    })
}

/// Only lists of text are asked for this; other values are a wrong type anyway.
fn all_differ(values: &[Json]) -> bool {
    let mut seen = std::collections::HashSet::new();
    values
        .iter()
        .filter_map(Json::text)
        .all(|text| seen.insert(text))
}

impl Text {
    fn check(&self, value: &Json) -> Option<Problem> {
        let Json::Text(text) = value else {
            return wrong_type(value, "string");
        };
        let shown = || value.repr();
        let length = text.chars().count();
        if length < self.min_length {
            return Some(problem(
                "minLength",
                format!("{} should be non-empty", shown()),
            ));
        }
        if let Some(max) = self.max_length.filter(|max| length > *max) {
            let message = format!("{} is too long, {max} characters are allowed", shown());
            return Some(problem("maxLength", message));
        }
        if let Some(pattern) = self.pattern.filter(|pattern| !pattern.matches(text)) {
            let message = format!("{} does not match '{}'", shown(), pattern.text());
            return Some(problem("pattern", message));
        }
        let is_uuid = match self.uuid {
            None => true,
            Some(UuidForm::Any) => python::uuid(text).is_some(),
            Some(UuidForm::Hyphenated) => python::is_hyphenated_uuid(text),
        };
        if !is_uuid {
            return Some(problem("format", format!("{} is not a 'uuid'", shown())));
        }
        if !self.one_of.is_empty() && !self.one_of.contains(&text.as_str()) {
            let choices = python::repr_list(self.one_of.iter().copied());
            return Some(problem(
                "enum",
                format!("{} is not one of [{choices}]", shown()),
            ));
        }
        None
    }
}

impl Object {
    fn check(&self, value: &Json) -> Option<Problem> {
        let Json::Object(members) = value else {
            return wrong_type(value, "object");
        };
        if members.len() < self.min_properties {
            return Some(problem(
                "minProperties",
                format!("{} should be non-empty", value.repr()),
            ));
        }
        if let Some(missing) = self
            .required
            .iter()
            .find(|name| !members.contains_key(**name))
        {
            return Some(problem(
                "required",
                format!("'{missing}' is a required property"),
            ));
        }
        if let Some(problem) = self.check_names(value) {
            return Some(problem);
        }
        value.members().fold(None, |best, (key, member)| {
            nearer(best, self.check_member(key, member))
        })
    }

    fn check_names(&self, value: &Json) -> Option<Problem> {
        if self.additional {
            return None;
        }
        let mut extras: Vec<&str> = value
            .members()
            .map(|(key, _)| key)
            .filter(|key| !self.properties.iter().any(|(name, _)| name == key))
            .filter(|key| {
                !self
                    .patterns
                    .iter()
                    .any(|(pattern, _)| pattern.matches(key))
            })
            .collect();
        if extras.is_empty() {
            return None;
        }
        extras.sort_unstable();
        let one = extras.len() == 1;
        let shown = shorten(python::repr_list(extras.iter().copied()));
        if self.patterns.is_empty() {
            let verb = if one { "was" } else { "were" };
            let message =
                format!("Additional properties are not allowed ({shown} {verb} unexpected)");
            return Some(problem("additionalProperties", message));
        }
        let verb = if one { "does" } else { "do" };
        let mut forms: Vec<_> = self
            .patterns
            .iter()
            .map(|(pattern, _)| pattern.text())
            .collect();
        forms.sort_unstable();
        let forms = python::repr_list(forms.iter().map(AsRef::as_ref));
        let message = format!("{shown} {verb} not match any of the regexes: {forms}");
        Some(problem("additionalProperties", message))
    }

    fn check_member(&self, key: &str, member: &Json) -> Option<Problem> {
        let by_name = self.properties.iter().filter(|(name, _)| *name == key);
        let by_form = self
            .patterns
            .iter()
            .filter(|(pattern, _)| pattern.matches(key));
        let by_name = by_name.map(|(name, schema)| (format!("['properties']['{name}']"), schema));
        let by_form = by_form.map(|(pattern, schema)| {
            (
                format!("['patternProperties']['{}']", pattern.text()),
                schema,
            )
        });
        by_name
            .chain(by_form)
            .fold(None, |best, (schema_path, schema)| {
                let found = schema.check(member);
                nearer(
                    best,
                    found.map(|found| found.below(Step::Key(key.to_owned()), &schema_path)),
                )
            })
    }
}

fn shorten(mut text: String) -> String {
    if text.len() > 1000 {
        let end = (0..=1000)
            .rev()
            .find(|end| text.is_char_boundary(*end))
            .unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    text
}
