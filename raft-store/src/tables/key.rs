//! Keys: the partition, then what tells the rows of a table apart. Numbers are big-endian, so that rows lie in the order
//! of their ids.

use placement_model::types::PartitionId;

use crate::wire::WireError;

/// How many bytes the partition takes.
const PARTITION_BYTES: usize = 2;

/// What tells the rows of a table apart.
pub(super) trait Key: Sized {
    fn append(&self, key: &mut Vec<u8>);
    /// `None` for bytes that no such key has.
    fn parse(bytes: &[u8]) -> Option<Self>;
}

/// The only row of a table.
impl Key for () {
    fn append(&self, _key: &mut Vec<u8>) {}

    fn parse(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(())
    }
}

macro_rules! numbers {
    ($($number:ty),+) => {
        $(impl Key for $number {
            fn append(&self, key: &mut Vec<u8>) {
                key.extend_from_slice(&self.to_be_bytes());
            }

            fn parse(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_be_bytes)
            }
        })+
    };
}

numbers!(u16, u32, u64);

/// Two numbers of equal length.
impl<N: Key> Key for (N, N) {
    fn append(&self, key: &mut Vec<u8>) {
        self.0.append(key);
        self.1.append(key);
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        Some((N::parse(first)?, N::parse(second)?))
    }
}

impl Key for String {
    fn append(&self, key: &mut Vec<u8>) {
        key.extend_from_slice(self.as_bytes());
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    }
}

/// The key of a row in a partition.
pub(super) fn key_of(partition: PartitionId, row: &impl Key) -> Vec<u8> {
    let mut key = prefix(partition).to_vec();
    row.append(&mut key);
    key
}

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
pub(super) fn rest<K: Key>(key: &[u8]) -> Result<K, WireError> {
    let rest = key.get(PARTITION_BYTES..).and_then(K::parse);
    rest.ok_or_else(|| damaged(key))
}

pub(super) fn damaged(key: &[u8]) -> WireError {
    WireError::Damaged(format!("a key that no row has: {key:02x?}"))
}
