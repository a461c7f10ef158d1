//! A fault of a value, shown to clients in the words and the layout of Python's jsonschema 4.26,
//! with the schema and the value that do not fit.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use super::types::Schema;
use crate::http::wire::json::{Json, cut};
use crate::http::wire::pretty::pretty;
use crate::http::wire::python;

/// What is wrong with a value, and where.
#[derive(Debug, Clone)]
pub(in crate::http) struct Problem<'a> {
    schema: &'a Schema,
    value: &'a Json,
    fault: Fault,
    /// Where the value is, from the inside out.
    path: Vec<Step<'a>>,
    /// Where the schema is, from the inside out.
    schema_path: Vec<Step<'a>>,
    /// What is shown instead. Its paths begin at this problem's place.
    instead: Option<Box<Problem<'a>>>,
}

/// In which way a value does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Another type.
    Type,
    /// A number is too small.
    Minimum,
    /// A number is too large.
    Maximum,
    /// Text is too short.
    MinLength,
    /// Text is too long.
    MaxLength,
    /// Text does not match its pattern.
    Pattern,
    /// Text is not a UUID.
    Format,
    /// Text is not one of the choices.
    Enum,
    /// A list is too short.
    MinItems,
    /// A list has equal items.
    UniqueItems,
    /// An object has too few members.
    MinProperties,
    /// An object lacks this member.
    Required(&'static str),
    /// An object has members that nothing allows.
    Additional,
    /// Neither this nor `null`.
    AnyOf,
}

/// One step on the way to a value or a schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step<'a> {
    /// To the member of this name.
    Key(Cow<'a, str>),
    /// To the item in this place.
    Index(usize),
}

impl<'a> Problem<'a> {
    /// A problem of the value itself.
    pub(super) fn new(schema: &'a Schema, value: &'a Json, fault: Fault) -> Self {
        Self {
            schema,
            value,
            fault,
            path: Vec::new(),
            schema_path: Vec::new(),
            instead: None,
        }
    }

    /// A value that is neither null nor what it may be otherwise. If its type is right, the better
    /// news is what else is wrong with it.
    pub(super) fn none_fits(schema: &'a Schema, value: &'a Json, mut otherwise: Self) -> Self {
        let instead = (otherwise.fault != Fault::Type).then(|| {
            otherwise.schema_path.push(Step::Index(0));
            Box::new(otherwise)
        });
        Self {
            instead,
            ..Self::new(schema, value, Fault::AnyOf)
        }
    }

    /// The same problem, seen from the list.
    pub(super) fn item(mut self, index: usize) -> Self {
        self.path.push(Step::Index(index));
        self.schema_path.push(Step::Key("items".into()));
        self
    }

    /// The same problem, seen from the object, whose `keyword` has the schema at `step`.
    pub(super) fn member(mut self, name: &'a str, keyword: &'static str, step: Step<'a>) -> Self {
        self.path.push(Step::Key(name.into()));
        self.schema_path.push(step);
        self.schema_path.push(Step::Key(keyword.into()));
        self
    }

    /// Whether this problem is worse than another: nearer to the top, or further on in its place.
    pub(super) fn severity(&self, other: &Self) -> Ordering {
        let depth = other.path.len().cmp(&self.path.len());
        depth.then_with(|| self.path.iter().rev().cmp(other.path.iter().rev()))
    }

    fn keyword(&self) -> &'static str {
        match self.fault {
            Fault::Type => "type",
            Fault::Minimum => "minimum",
            Fault::Maximum => "maximum",
            Fault::MinLength => "minLength",
            Fault::MaxLength => "maxLength",
            Fault::Pattern => "pattern",
            Fault::Format => "format",
            Fault::Enum => "enum",
            Fault::MinItems => "minItems",
            Fault::UniqueItems => "uniqueItems",
            Fault::MinProperties => "minProperties",
            Fault::Required(_) => "required",
            Fault::Additional => "additionalProperties",
            Fault::AnyOf => "anyOf",
        }
    }

    fn message(&self) -> String {
        let wrong = match self.fault {
            Fault::Required(name) => return format!("'{name}' is a required property"),
            Fault::Additional => return self.names_not_allowed(),
            Fault::Type => format!("is not of type {}", self.types()),
            Fault::Minimum => format!("is less than the minimum of {}", self.asked("minimum")),
            Fault::Maximum => format!("is greater than the maximum of {}", self.asked("maximum")),
            Fault::Pattern => format!("does not match {}", self.asked("pattern")),
            Fault::Format => format!("is not a {}", self.asked("format")),
            Fault::Enum => format!("is not one of {}", self.asked("enum")),
            Fault::MaxLength => "is too long".to_owned(),
            Fault::UniqueItems => "has non-unique elements".to_owned(),
            // There is no schema that asks for more than one.
            Fault::MinLength | Fault::MinItems | Fault::MinProperties => {
                "should be non-empty".to_owned()
            }
            Fault::AnyOf => "is not valid under any of the given schemas".to_owned(),
        };
        format!("{} {wrong}", self.value.repr())
    }

    /// What the schema asks for.
    fn asked(&self, keyword: &str) -> String {
        let shown = self.schema.shown();
        shown.get(keyword).map(Json::repr).unwrap_or_default()
    }

    fn types(&self) -> String {
        match self.schema.shown().get("type") {
            Some(Json::Array(types)) => types.iter().map(Json::repr).collect::<Vec<_>>().join(", "),
            other => other.map(Json::repr).unwrap_or_default(),
        }
    }

    fn names_not_allowed(&self) -> String {
        let Schema::Object(object) = self.schema else {
            return String::new();
        };
        let mut extras: Vec<&str> = object.extras(self.value).collect();
        extras.sort_unstable();
        let one = extras.len() == 1;
        let names = cut(python::repr_list(extras.iter().copied()));
        if object.patterns.is_empty() {
            let verb = if one { "was" } else { "were" };
            return format!("Additional properties are not allowed ({names} {verb} unexpected)");
        }
        let verb = if one { "does" } else { "do" };
        let mut forms: Vec<_> = object
            .patterns
            .iter()
            .map(|(form, _)| form.text())
            .collect();
        forms.sort_unstable();
        let forms = python::repr_list(forms);
        format!("{names} {verb} not match any of the regexes: {forms}")
    }
}

impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(instead) = &self.instead {
            return fmt::Display::fmt(instead, f);
        }
        write!(
            f,
            "{}\n\nFailed validating '{}' in schema",
            self.message(),
            self.keyword()
        )?;
        write_path(f, &self.schema_path)?;
        write!(f, ":\n{}\n\nOn instance", indented(&self.schema.shown()))?;
        write_path(f, &self.path)?;
        write!(f, ":\n{}", indented(self.value))
    }
}

fn write_path(f: &mut fmt::Formatter<'_>, path: &[Step<'_>]) -> fmt::Result {
    path.iter().rev().try_for_each(|step| match step {
        Step::Key(key) => write!(f, "[{}]", cut(python::repr(key))),
        Step::Index(index) => write!(f, "[{index}]"),
    })
}

fn indented(value: &Json) -> String {
    let lines = pretty(value);
    let lines = lines.lines().map(|line| format!("    {line}"));
    lines.collect::<Vec<_>>().join("\n")
}
