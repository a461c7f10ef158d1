//! Row keys: the partition, then the key within the table. Numbers are big-endian, so that rows are
//! sorted by their ids.

use placement_model::types::PartitionId;

use crate::wire::WireError;

/// Length of the partition in a key.
const PARTITION_BYTES: usize = 2;

/// The common prefix of the keys of all rows of a partition.
pub(crate) fn prefix(partition: PartitionId) -> [u8; PARTITION_BYTES] {
    partition.0.to_be_bytes()
}

/// The partition of a key.
pub(super) fn partition(key: &[u8]) -> Result<PartitionId, WireError> {
    let first = key.first_chunk().ok_or_else(|| damaged(key))?;
    Ok(PartitionId(u16::from_be_bytes(*first)))
}

/// The part of a key after the partition.
fn after_partition(key: &[u8]) -> Result<&[u8], WireError> {
    key.get(PARTITION_BYTES..).ok_or_else(|| damaged(key))
}

/// The numbers after the partition in a key; fails unless there are exactly `COUNT`.
pub(super) fn numbers<const BYTES: usize, const COUNT: usize>(
    key: &[u8],
) -> Result<[[u8; BYTES]; COUNT], WireError> {
    match after_partition(key)?.as_chunks() {
        (numbers, []) => numbers.try_into().map_err(|_| damaged(key)),
        _ => Err(damaged(key)),
    }
}

/// The text after the partition in a key.
pub(super) fn text(key: &[u8]) -> Result<&str, WireError> {
    std::str::from_utf8(after_partition(key)?).map_err(|_| damaged(key))
}

pub(super) fn damaged(key: &[u8]) -> WireError {
    WireError::Damaged(format!("an invalid key: {key:02x?}"))
}
