//! Validation: the first thing that is wrong with a value. What is wrong with an object itself comes before what is
//! wrong with its members.

use std::collections::HashSet;
use std::fmt::Debug;

use super::problem::{Problem, all_quoted, quoted, shown};
use super::types::{Object, Schema, Text, UuidForm};
use crate::http::wire::json::Json;
use crate::http::wire::spelling;

impl Schema {
    /// Whether a value fits.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub(crate) fn check(&self, value: &Json) -> Result<(), Problem> {
        match (self, value) {
            (Self::Nullable(_), Json::Null) => Ok(()),
            (Self::Nullable(schema), _) => schema.check(value).map_err(Problem::and_not_null),
            (Self::Integer { min, max }, _) => {
                let integer = value.integer().ok_or_else(|| of_type(value, "integer"))?;
                at_most(value, integer, max.unwrap_or(i64::MAX))?;
                let min = min.unwrap_or(i64::MIN);
                require(integer >= min, "minimum", || {
                    format!("{} is less than the minimum of {min}", shown(value))
                })
            }
            (Self::Number { max }, _) => {
                let number = value.number().ok_or_else(|| of_type(value, "number"))?;
                at_most(value, number, *max)
            }
            (Self::Text(schema), Json::Text(text)) => schema.check(text),
            (Self::Text(_), _) => Err(of_type(value, "string")),
            (
                Self::Array {
                    items,
                    min_items,
                    unique,
                },
                Json::Array(values),
            ) => {
                require(values.len() >= *min_items, "minItems", || empty(value))?;
                for (index, item) in values.iter().enumerate() {
                    let checked = items.check(item);
                    checked.map_err(|problem| problem.of_item(index))?;
                }
                require(!unique || all_differ(values), "uniqueItems", || {
                    format!("{} has non-unique elements", shown(value))
                })
            }
            (Self::Array { .. }, _) => Err(of_type(value, "array")),
            (Self::Object(schema), Json::Object(_)) => schema.check(value),
            (Self::Object(_), _) => Err(of_type(value, "object")),
        }
    }
}

fn require(
    fits: bool,
    keyword: &'static str,
    otherwise: impl FnOnce() -> String,
) -> Result<(), Problem> {
    if fits {
        return Ok(());
    }
    Err(Problem::new(keyword, otherwise()))
}

fn of_type(value: &Json, kind: &str) -> Problem {
    Problem::new("type", format!("{} is not of type '{kind}'", shown(value)))
}

fn at_most<N: PartialOrd + Debug>(value: &Json, number: N, max: N) -> Result<(), Problem> {
    require(number <= max, "maximum", || {
        format!("{} is greater than the maximum of {max:?}", shown(value))
    })
}

/// No schema asks for more than one.
fn empty(value: &Json) -> String {
    format!("{} should be non-empty", shown(value))
}

/// Only lists of text are asked for this.
fn all_differ(values: &[Json]) -> bool {
    let mut seen = HashSet::new();
    let mut texts = values.iter().filter_map(Json::text);
    texts.all(|text| seen.insert(text))
}

impl Text {
    fn check(&self, text: &str) -> Result<(), Problem> {
        if let Some(form) = &self.pattern {
            require(form.matches(text), "pattern", || {
                format!("{} does not match '{}'", quoted(text), form.text())
            })?;
        }
        let length = text.chars().count();
        require(length >= self.min_length, "minLength", || {
            format!("{} should be non-empty", quoted(text))
        })?;
        let max = self.max_length.unwrap_or(usize::MAX);
        require(length <= max, "maxLength", || {
            format!("{} is too long: it may have {max} characters", quoted(text))
        })?;
        let is_uuid = match self.uuid {
            None => true,
            Some(UuidForm::Any) => spelling::uuid(text).is_some(),
            Some(UuidForm::Hyphenated) => spelling::is_hyphenated_uuid(text),
        };
        require(is_uuid, "format", || {
            format!("{} is not a 'uuid'", quoted(text))
        })?;
        let fits = self.one_of.is_empty() || self.one_of.contains(&text);
        require(fits, "enum", || {
            let choices = all_quoted(self.one_of.iter().copied());
            format!("{} is not one of [{choices}]", quoted(text))
        })
    }
}

impl Object {
    fn check(&self, value: &Json) -> Result<(), Problem> {
        let count = value.members().count();
        require(count >= self.min_properties, "minProperties", || {
            empty(value)
        })?;
        let extra = value.members().find(|(name, _)| !self.allows(name));
        if let Some((name, _)) = extra {
            return Err(self.not_allowed(name));
        }
        let missing = self.required.iter().find(|name| value.get(name).is_none());
        if let Some(name) = missing {
            let message = format!("'{name}' is a required property");
            return Err(Problem::new("required", message));
        }
        for (name, member) in value.members() {
            for (key, schema) in self.properties.iter().filter(|(key, _)| *key == name) {
                let checked = schema.check(member);
                checked.map_err(|problem| problem.of_member(name, "properties", key))?;
            }
            for (form, schema) in self.patterns.iter().filter(|(form, _)| form.matches(name)) {
                let (keyword, key) = ("patternProperties", form.text());
                let checked = schema.check(member);
                checked.map_err(|problem| problem.of_member(name, keyword, key))?;
            }
        }
        Ok(())
    }

    fn allows(&self, name: &str) -> bool {
        self.additional
            || self.properties.iter().any(|(key, _)| *key == name)
            || self.patterns.iter().any(|(form, _)| form.matches(name))
    }

    fn not_allowed(&self, name: &str) -> Problem {
        let name = quoted(name);
        let known = all_quoted(self.properties.iter().map(|(key, _)| *key));
        let message = if self.patterns.is_empty() {
            format!(
                "Additional properties are not allowed ({name} was unexpected); known are {known}"
            )
        } else {
            let forms = all_quoted(self.patterns.iter().map(|(form, _)| form.text()));
            format!("{name} does not match any of the regexes: {forms}")
        };
        Problem::new("additionalProperties", message)
    }
}
