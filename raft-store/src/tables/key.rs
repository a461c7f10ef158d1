//! Keys: the partition, then what tells the rows of a table apart.

use placement_model::types::PartitionId;

use crate::wire::WireError;

/// How many bytes the partition takes.
const PARTITION_BYTES: usize = 2;

/// The key made of these parts, in the default partition.
pub(super) fn key(parts: &[&[u8]]) -> Vec<u8> {
    let mut key = vec![0; PARTITION_BYTES];
    for part in parts {
        key.extend_from_slice(part);
    }
    key
}

/// What the keys of all rows of a partition begin with.
pub(crate) fn prefix(partition: PartitionId) -> [u8; PARTITION_BYTES] {
    partition.0.to_be_bytes()
}

/// The same key in another partition.
pub(super) fn moved(mut key: Vec<u8>, partition: PartitionId) -> Vec<u8> {
    key[..PARTITION_BYTES].copy_from_slice(&prefix(partition));
    key
}

/// The partition that a key names.
pub(super) fn partition(key: &[u8]) -> Result<PartitionId, WireError> {
    let first = key.first_chunk().ok_or_else(|| damaged(key))?;
    Ok(PartitionId(u16::from_be_bytes(*first)))
}

/// What follows the partition.
fn rest(key: &[u8]) -> Result<&[u8], WireError> {
    key.get(PARTITION_BYTES..).ok_or_else(|| damaged(key))
}

/// The rest of a key of exactly `N` bytes.
pub(super) fn fixed<const N: usize>(key: &[u8]) -> Result<[u8; N], WireError> {
    rest(key)?.try_into().map_err(|_other_length| damaged(key))
}

/// A key of one number.
pub(super) fn one_u32(key: &[u8]) -> Result<u32, WireError> {
    fixed(key).map(u32::from_be_bytes)
}

/// A key of two numbers.
pub(super) fn two_u32(key: &[u8]) -> Result<(u32, u32), WireError> {
    let both = u64::from_be_bytes(fixed(key)?);
    Ok(((both >> 32) as u32, both as u32))
}

/// A key of one long number.
pub(super) fn one_u64(key: &[u8]) -> Result<u64, WireError> {
    fixed(key).map(u64::from_be_bytes)
}

/// A key of two long numbers.
pub(super) fn two_u64(key: &[u8]) -> Result<(u64, u64), WireError> {
    let both = u128::from_be_bytes(fixed(key)?);
    Ok(((both >> 64) as u64, both as u64))
}

/// A key of text.
pub(super) fn text(key: &[u8]) -> Result<&str, WireError> {
    std::str::from_utf8(rest(key)?).map_err(|_not_text| damaged(key))
}

pub(super) fn damaged(key: &[u8]) -> WireError {
    WireError::Damaged(format!("a key that no row has: {key:02x?}"))
}
