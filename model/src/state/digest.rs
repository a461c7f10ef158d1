//! The digest of a state: a sum over its rows. The cost of a changed row is independent of the
//! number of rows, and equal states have equal digests regardless of their history.
//!
//! Every row is serialized as MessagePack, structs as arrays of their fields and variants by name,
//! and hashed by XXH3. `std::hash::Hash` is unsuitable: its input to a hasher may differ between
//! compilers, and nodes with different builds compare digests.

use std::fmt;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use super::change::{Change, ConsumerRow};
use crate::types::{ConsumerUuid, PartitionId};

/// A digest of all rows. Equal states have equal digests, regardless of their history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Digest {
    /// The sum of the hashes of the rows.
    pub sum: u128,
    /// Total size of the serialized rows in bytes.
    pub bytes: u64,
}

/// Version of the row format that digests are computed over. Raise it with every change of a row's
/// serialization, such as a new or renamed field or another encoding. Digests of different formats
/// cannot be compared.
const FORM: u32 = 1;

impl Digest {
    /// Whether this digest equals a recorded one, given as displayed by [`Digest`]; `None` if the
    /// recorded digest was computed over another row format.
    pub fn agrees_with(self, written: &str) -> Option<bool> {
        let (form, _) = written.split_once('.')?;
        (form.parse() == Ok(FORM)).then(|| written == self.to_string())
    }

    /// The digest of the row that a change puts; the empty digest if it puts no row.
    pub fn from_change(change: &Change) -> Self {
        // The numbers identify tables and are append only.
        match change {
            Change::PutProvider(id, row) => hashed(1, id, row),
            Change::PutInventory(id, class, row) => hashed(2, (id, class), row),
            Change::PutProviderTraits(id, traits) if !traits.is_empty() => hashed(3, id, traits),
            Change::PutProviderAggregates(id, aggregates) if !aggregates.is_empty() => {
                hashed(4, id, aggregates)
            }
            Change::PutResourceClass(id, row) => hashed(5, id, row),
            Change::PutTrait(id, row) => hashed(6, id, row),
            Change::PutConsumer(consumer, row) => Self::from_consumer(consumer, row),
            Change::PutSession(origin, row) => hashed(8, origin, row),
            Change::PutCounters(counters) => hashed(9, (), counters),
            Change::PutOutcome(origin, sequence, outcome) => {
                hashed(10, (origin, sequence), outcome)
            }
            Change::PutLevel(level) => hashed(11, (), level),
            Change::PutPartition(id, row) => hashed(12, id, row),
            Change::PutJoin(node, row) => hashed(20, node, row),
            Change::PutLimits(row) => hashed(21, (), row),
            Change::PutProviderTraits(..)
            | Change::PutProviderAggregates(..)
            | Change::Delete(_) => Self::default(),
        }
    }

    /// The digest of one consumer's row.
    pub(crate) fn from_consumer(consumer: &ConsumerUuid, row: &ConsumerRow) -> Self {
        hashed(7, consumer, row)
    }

    /// The contribution of a partition's rows to the digest of the cluster. The default partition
    /// contributes its digest unchanged; for others the id is mixed in, so that equal rows of two
    /// partitions contribute differently.
    #[must_use]
    pub fn in_partition(self, partition: PartitionId) -> Self {
        if partition.is_default() {
            return self;
        }
        let mut bytes = [0; 18];
        bytes[..2].copy_from_slice(&partition.0.to_be_bytes());
        bytes[2..].copy_from_slice(&self.sum.to_be_bytes());
        Self {
            sum: xxh3_128(&bytes),
            ..self
        }
    }

    /// Adds the rows of another digest.
    pub fn count_in(&mut self, other: Self) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }

    /// Removes the rows of another digest.
    pub(crate) fn count_out(&mut self, other: Self) {
        self.sum = self.sum.wrapping_sub(other.sum);
        self.bytes = self.bytes.wrapping_sub(other.bytes);
    }
}

/// Prints the version of the row format, a dot and 32 hexadecimal digits.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FORM}.{:032x}", self.sum)
    }
}

/// The digest of one row of a table.
fn hashed(table: u8, key: impl Serialize, row: impl Serialize) -> Digest {
    let mut bytes = Vec::with_capacity(256);
    bytes.push(table);
    rmp_serde::encode::write(&mut bytes, &(key, row))
        .expect("writing to memory does not fail, and every row type can be serialized");
    Digest {
        sum: xxh3_128(&bytes),
        bytes: bytes.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_of_rows_is_pinned() {
        let digest = hashed(7, "c", (7_u32, Some("x"), vec![1_u8, 2]));
        assert_eq!(
            digest.sum, PINNED,
            "nodes of two builds would compute different digests of equal states"
        );
    }

    const PINNED: u128 = 116_154_220_561_802_263_562_268_217_307_673_080_123;

    #[test]
    fn digests_of_different_formats_are_not_compared() {
        let digest = hashed(6, 1_u32, "A");
        let written = digest.to_string();
        assert_eq!(digest.agrees_with(&written), Some(true));
        assert_eq!(Digest::default().agrees_with(&written), Some(false));
        let (_, digits) = written.split_once('.').expect("a version and digits");
        assert_eq!(digest.agrees_with(digits), None);
        let later = format!("{}.{digits}", FORM + 1);
        assert_eq!(digest.agrees_with(&later), None);
    }

    #[test]
    fn digest_depends_on_the_boundaries_of_texts() {
        assert_ne!(hashed(6, "A", "BC"), hashed(6, "AB", "C"));
    }
}
