//! Validation, which reports the first error. Errors of an object itself come before errors of its
//! members.

use std::collections::HashSet;
use std::fmt::Debug;

use super::problem::{Problem, all_quoted, cut, quoted, shown};
use super::types::{Format, Object, Schema, Text};
use crate::http::wire::json::Json;
use crate::http::wire::spelling;

impl Schema {
    /// Checks a value against the schema.
    ///
    /// # Errors
    /// The first error.
    pub(crate) fn check(&self, value: &Json) -> Result<(), Problem> {
        match (self, value) {
            (Self::Nullable { .. }, Json::Null) => Ok(()),
            (Self::Nullable { schema }, _) => schema.check(value).map_err(Problem::and_not_null),
            (Self::Integer { minimum, maximum }, _) => {
                let integer = value
                    .integer()
                    .ok_or_else(|| wrong_type(value, "integer"))?;
                at_most(value, integer, maximum.unwrap_or(i64::MAX))?;
                let min = minimum.unwrap_or(i64::MIN);
                require(integer >= min, "minimum", || {
                    format!("{} is less than the minimum of {min}", shown(value))
                })
            }
            (Self::Number { maximum, .. }, _) => {
                let number = value.number().ok_or_else(|| wrong_type(value, "number"))?;
                at_most(value, number, *maximum)
            }
            (Self::Boolean {}, Json::Bool(_)) => Ok(()),
            (Self::Boolean {}, _) => Err(wrong_type(value, "boolean")),
            (Self::String(schema), Json::Text(text)) => schema.check(text),
            (Self::String(_), _) => Err(wrong_type(value, "string")),
            (
                Self::Array {
                    items,
                    min_items,
                    unique_items,
                    ..
                },
                Json::Array(values),
            ) => {
                require(values.len() >= *min_items, "minItems", || empty(value))?;
                for (index, item) in values.iter().enumerate() {
                    let checked = items.check(item);
                    checked
                        .map_err(|problem| problem.in_parent(&index.to_string(), "['items']"))?;
                }
                require(!unique_items || all_differ(values), "uniqueItems", || {
                    format!("{} has non-unique elements", shown(value))
                })
            }
            (Self::Array { .. }, _) => Err(wrong_type(value, "array")),
            (Self::Object(schema), Json::Object(_)) => schema.check(value),
            (Self::Object(_), _) => Err(wrong_type(value, "object")),
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

fn wrong_type(value: &Json, kind: &str) -> Problem {
    Problem::new("type", format!("{} is not of type '{kind}'", shown(value)))
}

fn at_most<N: PartialOrd + Debug>(value: &Json, number: N, max: N) -> Result<(), Problem> {
    require(number <= max, "maximum", || {
        format!("{} is greater than the maximum of {max:?}", shown(value))
    })
}

/// The error for too few items; no schema requires more than one.
fn empty(value: &Json) -> String {
    format!("{} should be non-empty", shown(value))
}

/// Schemas require unique items of strings only.
fn all_differ(values: &[Json]) -> bool {
    let mut seen = HashSet::new();
    let mut texts = values.iter().filter_map(Json::text);
    texts.all(|text| seen.insert(text))
}

impl Text {
    fn check(&self, text: &str) -> Result<(), Problem> {
        if let Some(form) = &self.pattern {
            require(form.matches(text), "pattern", || {
                format!("{} does not match '{}'", quoted(text), form.text)
            })?;
        }
        let length = text.chars().count();
        require(length >= self.min_length, "minLength", || {
            format!("{} should be non-empty", quoted(text))
        })?;
        let max = self.max_length.unwrap_or(usize::MAX);
        require(length <= max, "maxLength", || {
            format!(
                "{} is too long: at most {max} characters are allowed",
                quoted(text)
            )
        })?;
        let has_format = match self.format {
            None => true,
            Some(Format::Uuid) => spelling::uuid(text).is_some(),
            Some(Format::HyphenatedUuid) => spelling::is_hyphenated_uuid(text),
        };
        require(has_format, "format", || {
            format!("{} is not a 'uuid'", quoted(text))
        })?;
        let fits = self.one_of.is_empty() || self.one_of.iter().any(|choice| choice == text);
        require(fits, "enum", || {
            let choices = all_quoted(self.one_of.iter().map(String::as_str));
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
        let max = self.max_properties.unwrap_or(usize::MAX);
        require(count <= max, "maxProperties", || {
            format!(
                "{} has too many properties: at most {max} are allowed",
                shown(value)
            )
        })?;
        let is_extra = |name: &str| self.schemas_of(name).next().is_none();
        let mut names = value.members().map(|(name, _)| name);
        if self.additional_properties == Some(false)
            && let Some(name) = names.find(|name| is_extra(name))
        {
            return Err(self.not_allowed(name));
        }
        let missing = self.required.iter().find(|name| value.get(name).is_none());
        if let Some(name) = missing {
            let message = format!("'{name}' is a required property");
            return Err(Problem::new("required", message));
        }
        for (name, member) in value.members() {
            for (keyword, key, schema) in self.schemas_of(name) {
                let checked = schema.check(member);
                checked.map_err(|problem| {
                    problem.in_parent(&cut(name), &format!("['{keyword}']['{key}']"))
                })?;
            }
        }
        Ok(())
    }

    /// The schemas for members of this name, with keyword and key.
    fn schemas_of(&self, name: &str) -> impl Iterator<Item = (&'static str, &str, &Schema)> {
        let named = self
            .properties
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(key, schema)| ("properties", key.as_str(), schema));
        let formed = self
            .pattern_properties
            .iter()
            .filter(move |(form, _)| form.matches(name));
        named.chain(formed.map(|(form, schema)| ("patternProperties", form.text.as_str(), schema)))
    }

    fn not_allowed(&self, name: &str) -> Problem {
        let name = quoted(name);
        let keys = self.properties.iter().map(|(key, _)| key.as_str());
        let forms = self
            .pattern_properties
            .iter()
            .map(|(form, _)| form.text.as_str());
        let message = if self.pattern_properties.is_empty() {
            let known = match all_quoted(keys) {
                known if known.is_empty() => "there are no others".to_owned(),
                known => format!("known are {known}"),
            };
            format!("Additional properties are not allowed ({name} was unexpected); {known}")
        } else {
            let forms = all_quoted(forms);
            format!("{name} does not match any of the regexes: {forms}")
        };
        Problem::new("additionalProperties", message)
    }
}
