//! Identifiers, generations, timestamps and write ids.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::names::shown_as_text;

/// A resource provider's UUID. The only valid spelling is lower case with hyphens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProviderUuid(pub Uuid);

impl ProviderUuid {
    /// Parses the canonical spelling. Other spellings of the same UUID (upper case, no hyphens)
    /// identify no provider, since upstream compares the text.
    pub fn from_canonical(text: &str) -> Option<Self> {
        let uuid = Uuid::try_parse(text).ok()?;
        let mut buffer = Uuid::encode_buffer();
        (uuid.as_hyphenated().encode_lower(&mut buffer) == text).then_some(Self(uuid))
    }
}

/// The text is not a UUID in its canonical spelling.
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
    /// An aggregate's UUID as the client spells it. Two spellings of one UUID are two aggregates.
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
/// Version counter of a provider or consumer, for optimistic concurrency control: the client sends
/// back the generation that it last saw. Signed, so that any integer of a client can be compared
/// (the edge clips it to the range of `i64`).
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
    /// The last microsecond of the year 9999.
    pub const LAST: Self = Self(253_402_300_799_999_999);

    /// Whether the time is within the years that HTTP headers can represent: 1970 to 9999.
    pub fn is_shown(self) -> bool {
        (Self(0)..=Self::LAST).contains(&self)
    }

    /// The time in RFC 3339 format; `None` beyond the year 9999.
    pub fn rfc3339(self) -> Option<String> {
        let nanos = i128::from(self.0) * 1_000;
        let moment = OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()?;
        moment.format(&Rfc3339).ok()
    }

    /// The time in RFC 3339 format, truncated to seconds; `None` beyond the year 9999.
    pub fn rfc3339_seconds(self) -> Option<String> {
        let second = 1_000_000;
        Self(self.0.div_euclid(second) * second).rfc3339()
    }
}

/// Identifies one write of one node across retries, so that a forwarded write is applied exactly
/// once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WriteId {
    /// Number of the node that received the client's request.
    pub origin: u64,
    /// Boot counter of that node.
    pub boot: u64,
    /// Sequence number of the write within the boot, increasing by one.
    pub sequence: u64,
    /// All writes of this boot below this sequence have been answered and are never sent again, so
    /// their outcomes can be forgotten.
    pub answered_below: u64,
}
