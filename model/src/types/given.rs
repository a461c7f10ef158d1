//! Names as clients give them.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

/// A name as a client spelled it, written as that text.
///
/// A malformed name can be the name of nothing. Whether and when a client is refused for it depends
/// on facts that only the model knows, so it travels in commands and requests with the others, and
/// comes back in refusals.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(from = "String", bound(deserialize = "T: FromStr"))]
pub enum Given<T> {
    /// What may be the name of something.
    Valid(T),
    /// What cannot.
    Malformed(Arc<str>),
}

impl<T> Given<T> {
    /// The name, if it may be one.
    pub fn valid(&self) -> Option<&T> {
        match self {
            Self::Valid(name) => Some(name),
            Self::Malformed(_) => None,
        }
    }
}

impl<T: AsRef<str>> Given<T> {
    /// The text that was given.
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
    fn a_name_comes_back_as_it_was_spelled() {
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
    fn a_uuid_has_one_spelling() {
        let canonical = "5d0dc45d-8b6a-4ae5-9e07-2d05b3a5b0a4";
        let given = |text: &str| Given::<ProviderUuid>::from(text);
        assert!(given(canonical).valid().is_some());
        for other in [canonical.to_uppercase(), canonical.replace('-', "")] {
            assert_eq!(given(&other), Given::Malformed(other.as_str().into()));
        }
    }
}
