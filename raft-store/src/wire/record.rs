//! A record: one version byte, then MessagePack with named fields.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The version of every record that this binary writes.
pub const VERSION: u8 = 1;

/// A record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// No bytes at all.
    #[error("an empty record")]
    Empty,
    /// Written by a newer binary.
    #[error(
        "a record of version {0}, but this binary reads up to version {VERSION}: a newer one wrote it"
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
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    encode_into(&mut bytes, value);
    bytes
}

/// Writes a record behind what `bytes` already holds.
pub fn encode_into<T: Serialize + ?Sized>(bytes: &mut Vec<u8>, value: &T) {
    bytes.push(VERSION);
    rmp_serde::encode::write_named(bytes, value)
        .expect("writing to memory does not fail, and no type of ours refuses to be written");
}

/// Reads a record, whole: bytes left over are damage.
///
/// # Errors
/// [`WireError`]; any bytes whatever give a value or an error.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    let (&version, mut rest) = bytes.split_first().ok_or(WireError::Empty)?;
    if version > VERSION {
        return Err(WireError::Newer(version));
    }
    if version == 0 {
        return Err(WireError::Damaged("version 0 was never written".to_owned()));
    }
    let value = rmp_serde::decode::from_read(&mut rest)
        .map_err(|error| WireError::Damaged(error.to_string()))?;
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(WireError::Damaged(format!("{} bytes too many", rest.len())))
    }
}
