//! Names of resource classes, traits, consumer types and providers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The error for a name in the wrong form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} is not a valid {noun}: {expected}")]
pub struct InvalidName {
    /// The kind of name: "resource class", "trait", "consumer type", "provider name".
    pub noun: &'static str,
    /// The value that was rejected.
    pub value: String,
    /// Description of the valid form.
    pub expected: &'static str,
}

const UPPER: &str = "1 to 255 characters from A-Z, 0-9 and _";

fn is_upper(value: &str) -> bool {
    (1..=255).contains(&value.len()) && value.bytes().all(is_upper_byte)
}

/// Whether a byte is allowed in the name of a resource class, trait or consumer type.
pub fn is_upper_byte(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'
}

/// Converts a type to its text (`as_str`), and back by its `FromStr`.
macro_rules! written_as_text {
    ($name:ident, $debug:literal) => {
        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.as_str().to_owned()
            }
        }

        shown_as_text!($name, $debug);
    };
}
pub(super) use written_as_text;

/// Displays a type as its text (`as_str`).
macro_rules! shown_as_text {
    ($name:ident, $debug:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $debug, self.as_str())
            }
        }
    };
}
pub(super) use shown_as_text;

/// Defines a name type with a validity check.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $noun:literal, $is_valid:ident, $expected:expr, $debug:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(value: &str) -> Result<Self, InvalidName> {
                if $is_valid(value) {
                    return Ok(Self(Arc::from(value)));
                }
                Err(InvalidName {
                    noun: $noun,
                    value: value.to_owned(),
                    expected: $expected,
                })
            }
        }

        written_as_text!($name, $debug);
    };
}
pub(super) use name;

macro_rules! upper_name {
    ($(#[$doc:meta])* $name:ident, $noun:literal) => {
        name!($(#[$doc])* $name, $noun, is_upper, UPPER, "{}");

        impl $name {
            /// True for custom names, which begin with `CUSTOM_`.
            pub fn is_custom(&self) -> bool {
                self.0.starts_with("CUSTOM_")
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

upper_name!(
    /// A resource class, standard (`VCPU`) or custom (`CUSTOM_GOLD`): 1 to 255 of `[A-Z0-9_]`.
    ResourceClassName, "resource class"
);
upper_name!(
    /// A trait, standard (`HW_CPU_X86_AVX2`) or custom (`CUSTOM_FAST`): 1 to 255 of `[A-Z0-9_]`.
    TraitName, "trait"
);
upper_name!(
    /// A consumer type (`INSTANCE`): 1 to 255 of `[A-Z0-9_]`.
    ConsumerTypeName, "consumer type"
);

fn is_short(value: &str) -> bool {
    value.chars().count() <= 200
}

// `Debug` adds quotes, since the name may contain any character.
name!(
    /// A provider's name: at most 200 characters, unique within a partition.
    ProviderName, "provider name", is_short, "at most 200 characters", "{:?}"
);
