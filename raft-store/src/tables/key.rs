//! Keys: the partition, then what tells the rows of a table apart. Numbers are big-endian, so that
//! rows lie in the order of their ids.

use placement_model::types::PartitionId;

use crate::wire::WireError;

/// How many bytes the partition takes.
const PARTITION_BYTES: usize = 2;

/// What the keys of all rows of a partition begin with.
pub(crate) fn prefix(partition: PartitionId) -> [u8; PARTITION_BYTES] {
    partition.0.to_be_bytes()
}

/// The partition that a key names.
pub(super) fn partition(key: &[u8]) -> Result<PartitionId, WireError> {
    let first = key.first_chunk().ok_or_else(|| damaged(key))?;
    Ok(PartitionId(u16::from_be_bytes(*first)))
}

/// What follows the partition in a key.
fn rest(key: &[u8]) -> Result<&[u8], WireError> {
    key.get(PARTITION_BYTES..).ok_or_else(|| damaged(key))
}

/// The numbers that follow the partition in a key, so many and no more.
pub(super) fn numbers<const BYTES: usize, const COUNT: usize>(
    key: &[u8],
) -> Result<[[u8; BYTES]; COUNT], WireError> {
    match rest(key)?.as_chunks() {
        (numbers, []) => numbers.try_into().map_err(|_| damaged(key)),
        _ => Err(damaged(key)),
    }
}

/// The text that follows the partition in a key.
pub(super) fn text(key: &[u8]) -> Result<&str, WireError> {
    std::str::from_utf8(rest(key)?).map_err(|_| damaged(key))
}

pub(super) fn damaged(key: &[u8]) -> WireError {
    WireError::Damaged(format!("a key that no row has: {key:02x?}"))
}
