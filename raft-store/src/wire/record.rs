//! A record: one version byte, then MessagePack.
//!
//! | version | a struct is |
//! |---|---|
//! | 1 | a map from the names of its fields to their values |
//! | 2 | an array of its fields |
//!
//! A variant of an enum stands under its name in both, and one decoder reads both.

use std::fmt;

use placement_model::Level;
use serde::Serialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The version of a record. Whoever writes one says which; whoever reads one finds it in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordVersion(pub(crate) u8);

impl RecordVersion {
    /// Fields have names, and a reader skips those that it does not know. Written where nothing is
    /// settled yet: in the first message of a connection, and in the files that name the owner of
    /// a data directory.
    pub const NAMED: Self = Self(1);
    /// Fields have places.
    pub const COMPACT: Self = Self(2);

    /// The oldest version that this binary reads.
    pub const OLDEST: Self = Self::NAMED;
    /// The newest version that this binary reads. The feature `rehearsal` is one ahead.
    pub const NEWEST: Self = if cfg!(feature = "rehearsal") {
        Self(3)
    } else {
        Self::COMPACT
    };

    /// The version that the nodes of a cluster of this level write: all of them read it.
    pub const fn of(level: Level) -> Self {
        match level {
            Level(0..=2) => Self::COMPACT,
            Level(_) => Self::NEWEST,
        }
    }
}

impl fmt::Display for RecordVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// No bytes at all.
    #[error("an empty record")]
    Empty,
    /// Written by a newer binary.
    #[error(
        "a record of version {0}, but this binary reads up to version {newest}: a newer one wrote it",
        newest = RecordVersion::NEWEST
    )]
    Newer(u8),
    /// The version byte stands, but what follows is not the record.
    #[error("a damaged record: {0}")]
    Damaged(String),
}

impl From<WireError> for std::io::Error {
    fn from(error: WireError) -> Self {
        Self::new(std::io::ErrorKind::InvalidData, error)
    }
}

/// Writes a record.
pub fn encode<T: Serialize + ?Sized>(version: RecordVersion, value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    encode_into(&mut bytes, version, value);
    bytes
}

/// Writes a record behind what `bytes` already holds.
pub fn encode_into<T: Serialize + ?Sized>(bytes: &mut Vec<u8>, version: RecordVersion, value: &T) {
    bytes.push(version.0);
    let written = if version == RecordVersion::NAMED {
        rmp_serde::encode::write_named(bytes, value)
    } else {
        rmp_serde::encode::write(bytes, value)
    };
    written.expect("writing to memory does not fail, and no type of ours refuses to be written");
}

/// Reads a record, whole: bytes left over are damage.
///
/// # Errors
/// [`WireError`]; any bytes whatever give a value or an error.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    let (&version, mut rest) = bytes.split_first().ok_or(WireError::Empty)?;
    if version > RecordVersion::NEWEST.0 {
        return Err(WireError::Newer(version));
    }
    if version < RecordVersion::OLDEST.0 {
        let reason = format!("version {version} was never written");
        return Err(WireError::Damaged(reason));
    }
    let value = rmp_serde::decode::from_read(&mut rest)
        .map_err(|error| WireError::Damaged(error.to_string()))?;
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(WireError::Damaged(format!("{} bytes too many", rest.len())))
    }
}

/// The first field of a struct, whatever follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct First<T>(pub(crate) T);

impl<'de, T: serde::Deserialize<'de>> serde::Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FirstVisitor(std::marker::PhantomData))
    }
}

struct FirstVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: serde::Deserialize<'de>> Visitor<'de> for FirstVisitor<T> {
    type Value = First<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a struct")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<First<T>, A::Error> {
        let first = fields.next_element()?;
        while fields.next_element::<IgnoredAny>()?.is_some() {}
        first.map(First).ok_or_else(no_fields)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<First<T>, A::Error> {
        let first = fields.next_entry::<IgnoredAny, T>()?;
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        first.map(|(_, first)| First(first)).ok_or_else(no_fields)
    }
}

fn no_fields<E: serde::de::Error>() -> E {
    E::custom("a struct without fields")
}
