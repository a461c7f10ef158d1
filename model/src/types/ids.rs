//! Identifiers, generations and times.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::names::shown_as_text;

/// A resource provider's UUID. It has one spelling: lower case with hyphens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProviderUuid(pub Uuid);

impl ProviderUuid {
    /// The provider that this exact text names. Other spellings of the same UUID (upper case, no
    /// hyphens) name no provider, as upstream compares text.
    pub fn from_canonical(text: &str) -> Option<Self> {
        let uuid = Uuid::try_parse(text).ok()?;
        let mut buffer = Uuid::encode_buffer();
        (uuid.as_hyphenated().encode_lower(&mut buffer) == text).then_some(Self(uuid))
    }
}

/// A text that is not the one spelling of a provider's UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a UUID in lower case with hyphens")]
pub struct NotCanonical;

impl FromStr for ProviderUuid {
    type Err = NotCanonical;

    fn from_str(text: &str) -> Result<Self, NotCanonical> {
        Self::from_canonical(text).ok_or(NotCanonical)
    }
}

impl fmt::Display for ProviderUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

impl fmt::Debug for ProviderUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Arc<str>);

        impl $name {
            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }

        shown_as_text!($name, "{:?}");
    };
}

text_id!(
    /// An aggregate, as the client spells it; two spellings of one UUID are two aggregates.
    AggregateUuid
);
text_id!(
    /// A project: 1 to 255 characters, opaque.
    ProjectId
);
text_id!(
    /// A user: 1 to 255 characters, opaque.
    UserId
);
/// How often a provider or consumer has changed; the client sends back what it saw. Signed, so
/// that whatever integer a client sends can be compared (the edge clips to the range of `i64`).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Generation(pub i64);

impl Generation {
    /// The generation after this one.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Microseconds since 1970-01-01 UTC, read by the node that proposed the command.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The last of the year 9999.
    pub const LAST: Self = Self(253_402_300_799_999_999);

    /// Whether it is of the years that headers can show: 1970 to 9999.
    pub fn is_shown(self) -> bool {
        (Self(0)..=Self::LAST).contains(&self)
    }

    /// The moment as RFC 3339 has it; `None` beyond the year 9999.
    pub fn rfc3339(self) -> Option<String> {
        let nanos = i128::from(self.0) * 1_000;
        let moment = OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()?;
        moment.format(&Rfc3339).ok()
    }

    /// Writes it so, in whole seconds, for documents that people read.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize_rfc3339<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let second = 1_000_000;
        let whole = Self(self.0.div_euclid(second) * second);
        whole.rfc3339().serialize(serializer)
    }
}

/// Names one write of one node, however often it is sent: a forwarded write happens exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WriteId {
    /// The node that the client spoke to.
    pub origin: u64,
    /// Which start of that node: rises with every start.
    pub boot: u64,
    /// Rises by one with every write of this boot.
    pub sequence: u64,
    /// Every write of this boot below this sequence has been answered and is never sent again,
    /// so its outcome need not be remembered.
    pub answered_below: u64,
}
