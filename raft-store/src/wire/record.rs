//! A record: one version byte, then MessagePack. A struct is an array of its fields, and a variant
//! of an enum stands under its name.
//!
//! [`encode_named`] writes a map from the names of the fields to their values instead, which the
//! same decoder reads.

use std::fmt;

use placement_model::Level;
use rmp_serde::Deserializer;
use rmp_serde::decode::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of a record: its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordVersion(pub(crate) u8);

impl RecordVersion {
    /// The first version, and the oldest that this binary reads.
    pub const FIRST: Self = Self(1);
    /// The newest version that this binary reads. The feature `rehearsal` is one ahead.
    pub const NEWEST: Self = if cfg!(feature = "rehearsal") {
        Self(2)
    } else {
        Self::FIRST
    };

    /// The version that the nodes of a cluster of this level write: all of them read it.
    pub const fn of(level: Level) -> Self {
        match level {
            Level(0..=3) => Self::FIRST,
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
    rmp_serde::encode::write(bytes, value).expect(WRITTEN);
}

/// Writes a record whose fields have names, so that a reader skips those that it does not know: the
/// first message of a connection, and the file that names the owner of a data directory.
pub fn encode_named<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut bytes = vec![RecordVersion::FIRST.0];
    rmp_serde::encode::write_named(&mut bytes, value).expect(WRITTEN);
    bytes
}

const WRITTEN: &str = "writing to memory does not fail, and no type of ours refuses to be written";

/// Reads a record, whole: bytes left over are damage.
///
/// # Errors
/// [`WireError`]; any bytes whatever give a value or an error.
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
    let value = T::deserialize(&mut reader);
    let value = value.map_err(|error| WireError::Damaged(error.to_string()))?;
    // There is no marker of another value.
    match <()>::deserialize(&mut reader) {
        Err(Error::InvalidMarkerRead(_)) => Ok(value),
        _ => Err(WireError::Damaged("bytes too many".to_owned())),
    }
}
