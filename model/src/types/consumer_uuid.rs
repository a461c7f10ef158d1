//! A consumer's UUID, in 24 bytes if it has the canonical spelling.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::ids::ProviderUuid;

/// A consumer's UUID as the client spells it. The edge accepts 36 characters of `[0-9a-fA-F-]` and
/// does not normalize them, since upstream compares the text. Sorted as text.
#[derive(Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(from = "String")]
pub struct ConsumerUuid(Spelling);

/// Every text has exactly one representation, so equal texts are equal values.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Spelling {
    /// Lower case with hyphens. UUIDs have the same order as their texts.
    Canonical(Uuid),
    Other(Arc<str>),
}

impl ConsumerUuid {
    /// Sorts before all others and identifies no consumer.
    pub(crate) fn first() -> Self {
        Self::from("")
    }

    /// Calls a function with the text.
    fn with_text<T>(&self, with: impl FnOnce(&str) -> T) -> T {
        match &self.0 {
            Spelling::Canonical(uuid) => with(
                uuid.as_hyphenated()
                    .encode_lower(&mut [0; Hyphenated::LENGTH]),
            ),
            Spelling::Other(text) => with(text),
        }
    }
}

impl From<&str> for ConsumerUuid {
    fn from(text: &str) -> Self {
        Self(match ProviderUuid::from_canonical(text) {
            Some(ProviderUuid(uuid)) => Spelling::Canonical(uuid),
            None => Spelling::Other(Arc::from(text)),
        })
    }
}

impl From<String> for ConsumerUuid {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl PartialOrd for ConsumerUuid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ConsumerUuid {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Spelling::Canonical(one), Spelling::Canonical(other)) = (&self.0, &other.0) {
            return one.cmp(other);
        }
        self.with_text(|one| other.with_text(|other| one.cmp(other)))
    }
}

impl fmt::Display for ConsumerUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| f.write_str(text))
    }
}

impl fmt::Debug for ConsumerUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| write!(f, "{text:?}"))
    }
}

impl Serialize for ConsumerUuid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_text(|text| serializer.serialize_str(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_kept_and_sorted_as_text() {
        let mut texts = [
            "",
            "consumer1",
            "00000000-0000-0000-0000-000000000000",
            "00000000-0000-0000-0000-00000000000A",
            "00000000-0000-0000-0000-00000000000a",
            "00000000-0000-0000-0000-00000000000b",
            "000000000000000000000000-0000-0000-00",
            "5D0DC45D-8b6a-4ae5-9e07-2d05b3a5b0a4",
            "5d0dc45d-8b6a-4ae5-9e07-2d05b3a5b0a4",
            "5d0dc45d8b6a4ae59e072d05b3a5b0a4",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
        ];
        let mut uuids = texts.map(ConsumerUuid::from);
        texts.sort_unstable();
        uuids.sort_unstable();
        assert_eq!(uuids.each_ref().map(ConsumerUuid::to_string), texts);
        assert_eq!(ConsumerUuid::first(), uuids[0]);
        assert!(size_of::<ConsumerUuid>() <= 24);
        for uuid in uuids {
            let written = rmp_serde::to_vec(&uuid).unwrap();
            assert_eq!(written, rmp_serde::to_vec(&uuid.to_string()).unwrap());
            let read: ConsumerUuid = rmp_serde::from_slice(&written).unwrap();
            assert_eq!(read, uuid);
        }
    }
}
