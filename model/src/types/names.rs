//! Names of resource classes, traits, consumer types and providers.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A name that does not have the required form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} is not a valid {noun}: {expected}")]
pub struct InvalidName {
    /// What was to be named: "resource class", "trait", "consumer type", "provider name".
    pub noun: &'static str,
    /// The value that was given.
    pub value: String,
    /// The form a valid value has, in words.
    pub expected: &'static str,
}

const UPPER: &str = "1 to 255 characters out of A-Z, 0-9 and _";

fn is_upper(value: &str) -> bool {
    (1..=255).contains(&value.len()) && value.bytes().all(is_upper_byte)
}

/// Whether a byte may stand in the name of a resource class, trait or consumer type.
pub fn is_upper_byte(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'
}

macro_rules! upper_name {
    ($(#[$doc:meta])* $name:ident, $noun:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// True for names that operators make up, which begin with `CUSTOM_`.
            pub fn is_custom(&self) -> bool {
                self.0.starts_with("CUSTOM_")
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidName;
            fn from_str(value: &str) -> Result<Self, InvalidName> {
                if is_upper(value) {
                    Ok(Self(Arc::from(value)))
                } else {
                    Err(InvalidName { noun: $noun, value: value.to_owned(), expected: UPPER })
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;
            fn try_from(value: String) -> Result<Self, InvalidName> {
                value.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
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

/// A provider's name: at most 200 characters, unique in the cloud.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProviderName(Arc<str>);

impl ProviderName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ProviderName {
    type Error = InvalidName;
    fn try_from(value: String) -> Result<Self, InvalidName> {
        if value.chars().count() <= 200 {
            Ok(Self(Arc::from(value)))
        } else {
            Err(InvalidName {
                noun: "provider name",
                value,
                expected: "at most 200 characters",
            })
        }
    }
}

impl From<ProviderName> for String {
    fn from(name: ProviderName) -> String {
        name.0.as_ref().to_owned()
    }
}

impl fmt::Display for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}
