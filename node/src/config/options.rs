//! How one setting is known by four names: a field of the struct, a key of the file, a variable
//! of the environment and a flag. All four are made from the same line of [`super`].

use std::fmt;
use std::path::PathBuf;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What text from the environment or the command line is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Flag,
    /// Texts separated by commas.
    List,
    /// A text that nobody is to see: it has no flag, and is shown nowhere.
    Secret,
}

/// One setting.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The table of the file; empty: the top.
    pub section: &'static str,
    /// The key in that table.
    pub key: &'static str,
    /// What its text is read as.
    pub kind: Kind,
    /// Its default as the file would write it; `None`: unset.
    pub default: Option<String>,
    /// What it is for, with the unit.
    pub doc: &'static str,
}

impl Setting {
    /// `section.key`, as errors name it.
    pub fn path(&self) -> String {
        match self.section {
            "" => self.key.to_owned(),
            section => format!("{section}.{}", self.key),
        }
    }

    /// The flag without its dashes: `api-listen`.
    pub fn flag(&self) -> String {
        self.path().replace(['.', '_'], "-")
    }

    /// The variable: `PLACEMENTD_API_LISTEN`.
    pub fn variable(&self) -> String {
        format!(
            "PLACEMENTD_{}",
            self.path().replace('.', "_").to_uppercase()
        )
    }

    /// Reads text of the environment or the command line as this setting's kind.
    pub(super) fn parse(&self, text: &str) -> Result<toml::Value, String> {
        match self.kind {
            Kind::Text | Kind::Secret => Ok(toml::Value::String(text.to_owned())),
            Kind::Integer => text
                .trim()
                .parse::<i64>()
                .map(toml::Value::Integer)
                .map_err(|_| format!("{text:?} is not a whole number")),
            Kind::Flag => match text.trim() {
                "true" | "1" | "yes" | "on" => Ok(toml::Value::Boolean(true)),
                "false" | "0" | "no" | "off" => Ok(toml::Value::Boolean(false)),
                _ => Err(format!("{text:?} is neither true nor false")),
            },
            Kind::List => Ok(toml::Value::Array(
                text.split(',')
                    .map(str::trim)
                    .filter(|part| !part.is_empty())
                    .map(|part| toml::Value::String(part.to_owned()))
                    .collect(),
            )),
        }
    }
}

/// A type that a setting can have.
pub(super) trait Shape {
    /// How its text is read.
    const KIND: Kind;
    /// As the file would write it.
    fn show(&self) -> Option<String>;
}

macro_rules! integer_shape {
    ($($ty:ty),*) => {$(
        impl Shape for $ty {
            const KIND: Kind = Kind::Integer;
            fn show(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )*};
}

integer_shape!(u64, usize);

impl Shape for bool {
    const KIND: Kind = Kind::Flag;
    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Shape for String {
    const KIND: Kind = Kind::Text;
    fn show(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
}

/// A text that nobody is to see. What is written in its place says only whether there is one.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn shown(&self) -> &'static str {
        if self.is_empty() { "" } else { "(not shown)" }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => Ok(Self(text)),
            _ => Err(D::Error::custom("it has to be a text, in quotes")),
        }
    }
}

impl Shape for Secret {
    const KIND: Kind = Kind::Secret;
    fn show(&self) -> Option<String> {
        None
    }
}

impl Shape for PathBuf {
    const KIND: Kind = Kind::Text;
    fn show(&self) -> Option<String> {
        Some(format!("{:?}", self.display().to_string()))
    }
}

impl Shape for Vec<String> {
    const KIND: Kind = Kind::List;
    fn show(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
}

impl<T: Shape> Shape for Option<T> {
    const KIND: Kind = T::KIND;
    fn show(&self) -> Option<String> {
        self.as_ref().and_then(Shape::show)
    }
}

/// Declares one table of the configuration: the struct, its defaults and its list of settings.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $name:ident {
            $( $(#[doc = $doc:literal])+ $field:ident: $ty:ty = $default:expr, )*
        }
        $( with { $( $(#[doc = $tabledoc:literal])+ $table:ident: $Table:ident, )* } )?
        $( lists { $( $(#[doc = $listdoc:literal])+ $list:ident: $Row:ident, )* } )?
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $( $(#[doc = $doc])+ pub $field: $ty, )*
            $( $( $(#[doc = $tabledoc])+ pub $table: $Table, )* )?
            $( $( $(#[doc = $listdoc])+ pub $list: Vec<$Row>, )* )?
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $( $field: $default, )*
                    $( $( $table: $Table::default(), )* )?
                    $( $( $list: Vec::new(), )* )?
                }
            }
        }

        impl $name {
            fn list(section: &'static str, into: &mut Vec<$crate::config::options::Setting>) {
                let default = Self::default();
                $( into.push($crate::config::options::Setting {
                    section,
                    key: stringify!($field),
                    kind: <$ty as $crate::config::options::Shape>::KIND,
                    default: $crate::config::options::Shape::show(&default.$field),
                    doc: concat!($($doc, "\n"),+),
                }); )*
                $( $( $Table::list(stringify!($table), into); )* )?
            }
        }
    };
}

pub(super) use section;
