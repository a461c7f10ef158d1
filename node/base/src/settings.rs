//! Settings. A setting has four names: a struct field, a key of the configuration file, an
//! environment variable and a flag. Each module declares its table with [`settings!`]; `config`
//! combines the tables.

use std::any::TypeId;
use std::fmt::{self, Display};
use std::net::IpAddr;
use std::ops::Deref;
use std::str::FromStr;

/// Used by the code that [`settings!`] generates.
pub use serde;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A setting with a valid type but an unusable value.
#[derive(Debug, thiserror::Error)]
#[error("`{key}`: {message}")]
pub struct Invalid {
    /// Path of the setting, as `section.key`.
    pub key: String,
    /// The reason, possibly with a correct alternative.
    pub message: String,
}

impl Invalid {
    /// Combines the path of a setting, `section.key`, with a reason.
    pub fn new(key: &str, message: impl Into<String>) -> Self {
        Self {
            key: key.to_owned(),
            message: message.into(),
        }
    }
}

/// Checks that `address` has the form `host:port`.
///
/// # Errors
/// The address has another form, or has port 0 while `zero_port` is false.
pub fn check_address(key: &str, address: &str, zero_port: bool) -> Result<(), Invalid> {
    let wrong = |message: &str| Invalid::new(key, format!("{address:?}: {message}"));
    let parts = address.rsplit_once(':');
    let (host, port) = parts.ok_or_else(|| wrong("not of the form host:port"))?;
    if host.is_empty() {
        return Err(wrong("the host is missing"));
    }
    match port.parse::<u16>() {
        Ok(0) if !zero_port => Err(wrong("clients cannot connect to port 0")),
        Ok(_) => Ok(()),
        Err(_) => Err(wrong("the port is not a number from 0 to 65535")),
    }
}

/// Whether only this machine can reach the address.
pub fn is_loopback(address: &str) -> bool {
    let host = address
        .rsplit_once(':')
        .map_or(address, |(host, _)| host)
        .trim_matches(['[', ']']);
    host == "localhost" || (host.parse::<IpAddr>()).is_ok_and(|address| address.is_loopback())
}

/// How text from the environment or the command line is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text, taken literally.
    Text,
    /// An integer that fits an `i64`.
    Integer,
    /// A floating-point number, `f64`.
    Number,
    /// `true` or `false`, or a synonym.
    Flag,
    /// Texts separated by commas.
    List,
    /// A [`Secret`]: it has no flag and is never shown.
    Secret,
}

/// A setting with its default and description.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Table of the configuration file; empty for the top level.
    pub section: &'static str,
    /// Key in that table.
    pub key: &'static str,
    /// Type of its text form.
    pub kind: Kind,
    /// Default as TOML text; `None` if the setting is unset by default.
    pub default: Option<String>,
    /// Description, with the unit.
    pub doc: &'static str,
    check: fn(toml::Value) -> Result<(), String>,
}

impl Setting {
    /// A setting of type `T`; its kind follows from its default.
    pub fn new<T: Serialize + DeserializeOwned + 'static>(
        section: &'static str,
        key: &'static str,
        default: &T,
        doc: &'static str,
    ) -> Self {
        let default = toml::Value::try_from(default).ok();
        let is_secret = TypeId::of::<T>() == TypeId::of::<Secret>();
        let kind = match &default {
            _ if is_secret => Kind::Secret,
            Some(toml::Value::Integer(_)) => Kind::Integer,
            Some(toml::Value::Float(_)) => Kind::Number,
            Some(toml::Value::Boolean(_)) => Kind::Flag,
            Some(toml::Value::Array(_)) => Kind::List,
            _ => Kind::Text,
        };
        let check = |value: toml::Value| match T::deserialize(value) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.message().to_owned()),
        };
        Self {
            section,
            key,
            kind,
            default: (default.filter(|_| !is_secret)).map(|default| default.to_string()),
            doc,
            check,
        }
    }

    /// The path in errors: `section.key`.
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

    /// The environment variable: `PLACEMENTD_API_LISTEN`.
    pub fn variable(&self) -> String {
        let path = self.path().replace('.', "_");
        format!("PLACEMENTD_{}", path.to_uppercase())
    }

    /// Checks that the value has the type of the setting.
    pub fn check(&self, value: toml::Value) -> Result<(), String> {
        (self.check)(value)
    }

    /// Whether a value unsets the setting: it is an empty text, and the setting has no default.
    pub fn is_unset_by(&self, value: &toml::Value) -> bool {
        self.default.is_none() && value.as_str() == Some("")
    }

    /// Parses text from the environment or the command line.
    pub fn parse(&self, text: &str) -> Result<toml::Value, String> {
        match self.kind {
            Kind::Text | Kind::Secret => Ok(toml::Value::String(text.to_owned())),
            Kind::Integer => text
                .trim()
                .parse::<i64>()
                .map(toml::Value::Integer)
                .map_err(|_| format!("{text:?} is not a whole number")),
            Kind::Number => text
                .trim()
                .parse::<f64>()
                .map(toml::Value::Float)
                .map_err(|_| format!("{text:?} is not a number")),
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

/// A value that is written as a string in the configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text<T>(pub T);

impl<T> Deref for Text<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parsed = text.trim().parse();
        parsed.map(Self).map_err(|error| match error.to_string() {
            error if error.contains(&text) => D::Error::custom(error),
            error => D::Error::custom(format!("{text:?}: {error}")),
        })
    }
}

/// A text that is never shown. Its serialized form only shows whether it is set.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Returns the secret text.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether the secret is unset.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn shown(&self) -> &'static str {
        if self.is_empty() { "" } else { "(not shown)" }
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
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
            _ => Err(D::Error::custom("must be a text in quotes")),
        }
    }
}

/// Declares a table of the configuration: the struct, its defaults and its list of settings.
/// `fixed` fields are not settings: the file cannot set them, only tests and simulations do.
#[macro_export]
macro_rules! settings {
    (
        $(#[doc = $about:literal])+
        $name:ident {
            $( $(#[doc = $doc:literal])+ $field:ident: $ty:ty = $default:expr, )*
        }
        $( fixed { $( $(#[doc = $why:literal])+ $fixed:ident: $fixedty:ty = $value:expr, )* } )?
        $( with { $( $table:ident: $Table:ty, )* } )?
        $( lists { $( $list:ident: $Row:ty, )* } )?
    ) => {
        $(#[doc = $about])+
        #[derive(
            Debug,
            Clone,
            PartialEq,
            $crate::settings::serde::Serialize,
            $crate::settings::serde::Deserialize,
        )]
        #[serde(crate = "placement_base::settings::serde", default, deny_unknown_fields)]
        pub struct $name {
            $( $(#[doc = $doc])+ pub $field: $ty, )*
            $( $( $(#[doc = $why])+ #[serde(skip)] pub $fixed: $fixedty, )* )?
            $( $( #[doc = concat!("`[", stringify!($table), "]`.")] pub $table: $Table, )* )?
            $( $( #[doc = concat!("`[[", stringify!($list), "]]`.")] pub $list: Vec<$Row>, )* )?
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $( $field: $default, )*
                    $( $( $fixed: $value, )* )?
                    $( $( $table: <$Table>::default(), )* )?
                    $( $( $list: Vec::new(), )* )?
                }
            }
        }

        impl $name {
            /// The table with this name and its subtables.
            #[allow(
                clippy::allow_attributes, unused_mut, unused_variables,
                reason = "most have no tables, some have no settings"
            )]
            pub fn tables(name: &'static str) -> Vec<$crate::settings::Table> {
                let default = Self::default();
                let mut tables = vec![$crate::settings::Table {
                    name,
                    about: concat!($($about, "\n"),+),
                    settings: vec![$( $crate::settings::Setting::new(
                        name, stringify!($field), &default.$field, concat!($($doc, "\n"),+),
                    ), )*],
                }];
                $( $( tables.extend(<$Table>::tables(stringify!($table))); )* )?
                tables
            }
        }
    };
}

pub use settings;

/// A table of the configuration file.
#[derive(Debug, Clone)]
pub struct Table {
    /// Table name; empty for the top level.
    pub name: &'static str,
    /// Description of the table.
    pub about: &'static str,
    /// Settings in the order of the file.
    pub settings: Vec<Setting>,
}
