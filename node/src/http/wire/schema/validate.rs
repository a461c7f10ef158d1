//! Validation: the fault that is reported of a value.
//!
//! Of several faults one is reported, as the reference implementation's validator chooses it: the
//! one that lies nearest to the top, since the more of a value is wrong, the earlier a client
//! should hear of it; of neighbours, the one whose name or index is greatest; in one place, the
//! first in the order of the schema's keywords.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;

use super::problem::{Fault, Problem, Step};
use super::types::{Keyword, Object, Schema, Text, UuidForm};
use crate::http::wire::json::Json;
use crate::http::wire::python;

impl Schema {
    /// The fault to report of a value, if it has any.
    pub(in crate::http) fn check<'a>(&'a self, value: &'a Json) -> Option<Problem<'a>> {
        let found = |fault: Option<Fault>| fault.map(|fault| Problem::new(self, value, fault));
        match self {
            Self::Integer { min, max } => found(check_integer(value, *min, *max)),
            Self::Number { max } => found(check_number(value, *max)),
            Self::Text(text) => found(text.check(value)),
            Self::IntegerOrNull if *value == Json::Null => None,
            Self::IntegerOrNull => found(check_integer(value, None, None)),
            Self::Nullable(_) if *value == Json::Null => None,
            Self::Nullable(schema) => Some(Problem::none_fits(self, value, schema.check(value)?)),
            Self::Array {
                items,
                min_items,
                unique,
            } => match value {
                Json::Array(values) => found(check_list(values, *min_items, *unique))
                    .or_else(|| check_items(items, values)),
                _ => found(Some(Fault::Type)),
            },
            Self::Object(object) => match value {
                Json::Object(_) => self.check_object(object, value),
                _ => found(Some(Fault::Type)),
            },
        }
    }

    fn check_object<'a>(&'a self, object: &'a Object, value: &'a Json) -> Option<Problem<'a>> {
        let found = |fault: Option<Fault>| fault.map(|fault| Problem::new(self, value, fault));
        object
            .order
            .keywords()
            .into_iter()
            .fold(None, |best, keyword| {
                let problem = match keyword {
                    Keyword::Count => found(object.check_count(value)),
                    Keyword::Properties => object.check_properties(value),
                    Keyword::Patterns => object.check_patterns(value),
                    Keyword::Required => found(object.check_required(value)),
                    Keyword::Additional => found(object.check_names(value)),
                };
                worse(best, problem)
            })
    }
}

/// The problem to report of two; of equals the first.
fn worse<'a>(best: Option<Problem<'a>>, found: Option<Problem<'a>>) -> Option<Problem<'a>> {
    match (best, found) {
        (Some(best), Some(found)) if found.severity(&best) == Ordering::Greater => Some(found),
        (Some(best), _) => Some(best),
        (None, found) => found,
    }
}

fn check_integer(value: &Json, min: Option<i64>, max: Option<i64>) -> Option<Fault> {
    let Some(integer) = value.integer() else {
        return Some(Fault::Type);
    };
    if max.is_some_and(|max| integer > max) {
        return Some(Fault::Maximum);
    }
    min.is_some_and(|min| integer < min)
        .then_some(Fault::Minimum)
}

fn check_number(value: &Json, max: f64) -> Option<Fault> {
    match value.number() {
        None => Some(Fault::Type),
        Some(number) => (number > max).then_some(Fault::Maximum),
    }
}

fn check_list(values: &[Json], min_items: usize, unique: bool) -> Option<Fault> {
    if values.len() < min_items {
        return Some(Fault::MinItems);
    }
    (unique && !all_differ(values)).then_some(Fault::UniqueItems)
}

fn check_items<'a>(items: &'a Schema, values: &'a [Json]) -> Option<Problem<'a>> {
    values.iter().enumerate().fold(None, |best, (index, item)| {
        let found = items.check(item);
        worse(best, found.map(|problem| problem.item(index)))
    })
}

/// Only lists of text are asked for this. Values of other kinds are compared as they are shown.
fn all_differ(values: &[Json]) -> bool {
    let mut seen = HashSet::new();
    values.iter().all(|value| {
        seen.insert(match value {
            Json::Text(text) => (true, Cow::Borrowed(text.as_str())),
            other => (false, Cow::Owned(other.repr())),
        })
    })
}

impl Text {
    fn check(&self, value: &Json) -> Option<Fault> {
        let Json::Text(text) = value else {
            return Some(Fault::Type);
        };
        let form = self.pattern.as_ref();
        if form.is_some_and(|form| !form.matches(text)) {
            return Some(Fault::Pattern);
        }
        let length = text.chars().count();
        if length < self.min_length {
            return Some(Fault::MinLength);
        }
        if self.max_length.is_some_and(|max| length > max) {
            return Some(Fault::MaxLength);
        }
        let is_uuid = match self.uuid {
            None => true,
            Some(UuidForm::Any) => python::uuid(text).is_some(),
            Some(UuidForm::Hyphenated) => python::is_hyphenated_uuid(text),
        };
        if !is_uuid {
            return Some(Fault::Format);
        }
        (!self.one_of.is_empty() && !self.one_of.contains(&text.as_str())).then_some(Fault::Enum)
    }
}

impl Object {
    fn check_count(&self, value: &Json) -> Option<Fault> {
        let min = self.min_properties?;
        (value.members().count() < min).then_some(Fault::MinProperties)
    }

    fn check_required(&self, value: &Json) -> Option<Fault> {
        let mut names = self.required.iter().copied();
        names
            .find(|name| value.get(name).is_none())
            .map(Fault::Required)
    }

    fn check_names(&self, value: &Json) -> Option<Fault> {
        let extra = self.extras(value).next().is_some();
        extra.then_some(Fault::Additional)
    }

    /// The names of members that nothing allows.
    pub(super) fn extras<'a>(&'a self, value: &'a Json) -> impl Iterator<Item = &'a str> {
        let known = move |key: &str| {
            self.additional
                || self.properties.iter().any(|(name, _)| *name == key)
                || self.patterns.iter().any(|(form, _)| form.matches(key))
        };
        let names = value.members().map(|(key, _)| key);
        names.filter(move |key| !known(key))
    }

    fn check_properties<'a>(&'a self, value: &'a Json) -> Option<Problem<'a>> {
        self.properties.iter().fold(None, |best, (name, schema)| {
            let found = value.get(name).and_then(|member| schema.check(member));
            let step = || Step::Key(Cow::Borrowed(*name));
            worse(
                best,
                found.map(|problem| problem.member(name, "properties", step())),
            )
        })
    }

    fn check_patterns<'a>(&'a self, value: &'a Json) -> Option<Problem<'a>> {
        self.patterns.iter().fold(None, |best, (form, schema)| {
            let fitting = value.members().filter(|(key, _)| form.matches(key));
            fitting.fold(best, |best, (key, member)| {
                let step = || Step::Key(Cow::Borrowed(form.text()));
                let found = schema.check(member);
                worse(
                    best,
                    found.map(|problem| problem.member(key, "patternProperties", step())),
                )
            })
        })
    }
}
