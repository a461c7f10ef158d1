//! Names as given by clients, valid or not.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

/// A name as a client spelled it, serialized as that text.
///
/// A malformed name never exists in the state. Whether and when a malformed name is refused depends
/// on the state, so it is passed along in commands and requests, and returned in refusals.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(from = "String", bound(deserialize = "T: FromStr"))]
pub enum Given<T> {
    /// A well-formed name, which may exist.
    Valid(T),
    /// A text that cannot be a name.
    Malformed(Arc<str>),
}

impl<T> Given<T> {
    /// The name, if it is well-formed.
    pub fn valid(&self) -> Option<&T> {
        match self {
            Self::Valid(name) => Some(name),
            Self::Malformed(_) => None,
        }
    }
}

impl<T: AsRef<str>> Given<T> {
    /// The text as given by the client.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Valid(name) => name.as_ref(),
            Self::Malformed(text) => text,
        }
    }
}

impl<T: FromStr> From<&str> for Given<T> {
    fn from(text: &str) -> Self {
        text.parse()
            .map_or_else(|_| Self::Malformed(Arc::from(text)), Self::Valid)
    }
}

impl<T: FromStr> From<String> for Given<T> {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl<T: FromStr> FromStr for Given<T> {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::from(text))
    }
}

impl<T: fmt::Display> fmt::Display for Given<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Valid(name) => name.fmt(f),
            Self::Malformed(text) => f.write_str(text),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Given<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Valid(name) => name.fmt(f),
            Self::Malformed(text) => write!(f, "malformed {text:?}"),
        }
    }
}

impl<T: fmt::Display> Serialize for Given<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{ProviderUuid, ResourceClassName};

    #[test]
    fn name_keeps_its_spelling() {
        for (text, valid) in [
            ("VCPU", true),
            ("vcpu", false),
            ("", false),
            (" VCPU", false),
        ] {
            let given = Given::<ResourceClassName>::from(text);
            assert_eq!(given.valid().is_some(), valid, "{text:?}");
            assert_eq!(given.to_string(), text);
        }
    }

    #[test]
    fn only_canonical_uuid_is_valid() {
        let canonical = "5d0dc45d-8b6a-4ae5-9e07-2d05b3a5b0a4";
        let given = |text: &str| Given::<ProviderUuid>::from(text);
        assert!(given(canonical).valid().is_some());
        for other in [canonical.to_uppercase(), canonical.replace('-', "")] {
            assert_eq!(given(&other), Given::Malformed(other.as_str().into()));
        }
    }
}
