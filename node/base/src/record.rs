//! Records, the encoding of values that are stored or sent: one version byte, then MessagePack. A
//! struct is an array of its fields, and a variant of an enum is identified by its name.
//!
//! [`encode_named`] writes structs as maps from field names to values instead; the same decoder
//! reads both.

use std::fmt;

use placement_model::Level;
use rmp_serde::Deserializer;
use rmp_serde::decode::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of a record: its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordVersion(pub u8);

impl RecordVersion {
    /// The first version, and the oldest that this binary reads.
    pub const FIRST: Self = Self(1);
    /// The newest version that this binary reads. The feature `rehearsal` increases it by one.
    pub const NEWEST: Self = if cfg!(feature = "rehearsal") {
        Self(2)
    } else {
        Self::FIRST
    };

    /// The version that nodes of a cluster with this feature level write. All nodes of that cluster
    /// can read it.
    pub const fn for_level(level: Level) -> Self {
        match level {
            Level(0..=1) => Self::FIRST,
            Level(_) => Self::NEWEST,
        }
    }
}

impl fmt::Display for RecordVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The record has no bytes.
    #[error("an empty record")]
    Empty,
    /// A newer binary wrote the record.
    #[error(
        "a record of version {0}, but this binary reads up to version {newest}: a newer binary wrote it",
        newest = RecordVersion::NEWEST
    )]
    Newer(u8),
    /// The version byte is valid, but the rest is not a record of the expected type.
    #[error("a damaged record: {0}")]
    Damaged(String),
}

impl From<WireError> for std::io::Error {
    fn from(error: WireError) -> Self {
        Self::new(std::io::ErrorKind::InvalidData, error)
    }
}

/// Encodes a value as a record.
pub fn encode<T: Serialize + ?Sized>(version: RecordVersion, value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    encode_into(&mut bytes, version, value);
    bytes
}

/// Appends an encoded record to `bytes`.
pub fn encode_into<T: Serialize + ?Sized>(bytes: &mut Vec<u8>, version: RecordVersion, value: &T) {
    bytes.push(version.0);
    rmp_serde::encode::write(bytes, value).expect(WRITTEN);
}

/// Encodes a record with field names, so that a reader ignores unknown fields. Used for the first
/// message of a connection, and for the identity file of a data directory.
pub fn encode_named<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut bytes = vec![RecordVersion::FIRST.0];
    rmp_serde::encode::write_named(&mut bytes, value).expect(WRITTEN);
    bytes
}

const WRITTEN: &str = "writing to memory does not fail, and all our types can be serialized";

/// Decodes a whole record. Trailing bytes are an error.
///
/// # Errors
/// [`WireError`]. Arbitrary bytes never cause a panic.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    let (&version, rest) = bytes.split_first().ok_or(WireError::Empty)?;
    if version > RecordVersion::NEWEST.0 {
        return Err(WireError::Newer(version));
    }
    if version < RecordVersion::FIRST.0 {
        let reason = format!("version {version} was never written");
        return Err(WireError::Damaged(reason));
    }
    let mut reader = Deserializer::from_read_ref(rest);
    let value =
        T::deserialize(&mut reader).map_err(|error| WireError::Damaged(error.to_string()))?;
    // The error for a missing marker proves that the input ends here.
    match <()>::deserialize(&mut reader) {
        Err(Error::InvalidMarkerRead(_)) => Ok(value),
        _ => Err(WireError::Damaged("trailing bytes".to_owned())),
    }
}
