//! The digest of a state: a sum over its rows, so that a changed row costs the same however many
//! there are, and equal states have equal digests whatever way they were reached.
//!
//! Every row is written down as MessagePack, structs as arrays of their fields and variants by
//! name, and hashed by XXH3. `std::hash::Hash` would not do: what it feeds to a hasher may differ
//! between compilers, and nodes of one cluster compare digests while they run different builds.

use std::fmt;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use super::change::Change;
use crate::types::PartitionId;

/// A digest of all rows: equal states have equal digests, whatever way they were reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Digest(pub u128);

/// Which form of the rows digests are computed over. To be raised with every change of what a row
/// is written down as: a field that is added or named otherwise, another encoding. A digest of
/// another form says nothing about rows, be they equal or not.
const FORM: u32 = 1;

/// Tables as the digest tells them apart. Append only.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Table {
    Provider = 1,
    Inventory = 2,
    ProviderTraits = 3,
    ProviderAggregates = 4,
    ResourceClass = 5,
    Trait = 6,
    Consumer = 7,
    Session = 8,
    Counters = 9,
    Outcome = 10,
    Level = 11,
    Join = 20,
    Partition = 12,
}

impl Digest {
    /// Whether the same rows had the digest that was written down, as [`Digest`] is displayed;
    /// `None` if it was computed over another form of the rows, so that it cannot be known.
    pub fn agrees_with(self, written: &str) -> Option<bool> {
        let (form, _) = written.split_once('.')?;
        (form.parse() == Ok(FORM)).then(|| written == self.to_string())
    }

    /// The digest of the one row that a change puts; that of nothing if it puts none.
    pub fn of(change: &Change) -> Self {
        let mut digest = Self::default();
        match change {
            Change::PutProvider(id, row) => digest.add(Table::Provider, id, row),
            Change::PutInventory(id, class, row) => digest.add(Table::Inventory, (id, class), row),
            Change::PutProviderTraits(id, traits) if !traits.is_empty() => {
                digest.add(Table::ProviderTraits, id, traits);
            }
            Change::PutProviderAggregates(id, aggregates) if !aggregates.is_empty() => {
                digest.add(Table::ProviderAggregates, id, aggregates);
            }
            Change::PutResourceClass(id, row) => digest.add(Table::ResourceClass, id, row),
            Change::PutTrait(id, row) => digest.add(Table::Trait, id, row),
            Change::PutConsumer(consumer, row) => digest.add(Table::Consumer, consumer, row),
            Change::PutSession(origin, row) => digest.add(Table::Session, origin, row),
            Change::PutCounters(counters) => digest.add(Table::Counters, (), counters),
            Change::PutOutcome(origin, sequence, outcome) => {
                digest.add(Table::Outcome, (origin, sequence), outcome);
            }
            Change::PutLevel(level) => digest.add(Table::Level, (), level),
            Change::PutJoin(node, row) => digest.add(Table::Join, node, row),
            Change::PutPartition(id, row) => digest.add(Table::Partition, id, row),
            Change::PutProviderTraits(..)
            | Change::PutProviderAggregates(..)
            | Change::DeleteProvider(_)
            | Change::DeleteInventory(..)
            | Change::DeleteResourceClass(_)
            | Change::DeleteTrait(_)
            | Change::DeleteConsumer(_)
            | Change::DeleteOutcome(..)
            | Change::DeleteJoin(_) => {}
        }
        digest
    }

    /// What the rows of a partition count for in the digest of a cluster: those of the default one as they
    /// are, those of others so that equal rows of two partitions count differently.
    #[must_use]
    pub fn within(self, partition: PartitionId) -> Self {
        if partition.is_default() {
            return self;
        }
        let mut bytes = [0; 18];
        bytes[..2].copy_from_slice(&partition.0.to_be_bytes());
        bytes[2..].copy_from_slice(&self.0.to_be_bytes());
        Self(xxh3_128(&bytes))
    }

    /// Counts in what has this digest.
    pub fn count_in(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }

    /// Counts a row in.
    fn add(&mut self, table: Table, key: impl Serialize, row: impl Serialize) {
        self.0 = self.0.wrapping_add(row_hash(table, &key, &row));
    }

    /// Takes a row out that was counted in.
    pub(crate) fn remove(&mut self, table: Table, key: impl Serialize, row: impl Serialize) {
        self.0 = self.0.wrapping_sub(row_hash(table, &key, &row));
    }

    /// The same of what a row replaces, if it replaces one.
    pub(crate) fn remove_old(
        &mut self,
        table: Table,
        key: impl Serialize,
        old: Option<impl Serialize>,
    ) {
        if let Some(old) = old {
            self.remove(table, key, old);
        }
    }
}

/// The form of the rows, a point and 32 hexadecimal digits.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FORM}.{:032x}", self.0)
    }
}

fn row_hash(table: Table, key: &impl Serialize, row: &impl Serialize) -> u128 {
    let mut bytes = Vec::with_capacity(256);
    bytes.push(table as u8);
    rmp_serde::encode::write(&mut bytes, &(key, row))
        .expect("writing to memory does not fail, and every row type can be written down");
    xxh3_128(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_rows_are_written_down_is_pinned() {
        let mut digest = Digest::default();
        digest.add(Table::Consumer, "c", (7_u32, Some("x"), vec![1_u8, 2]));
        assert_eq!(
            digest.0, PINNED,
            "nodes of two builds would disagree about equal states"
        );
    }

    const PINNED: u128 = 116_154_220_561_802_263_562_268_217_307_673_080_123;

    #[test]
    fn a_digest_is_compared_only_with_those_of_its_form() {
        let mut digest = Digest::default();
        digest.add(Table::Trait, 1_u32, "A");
        let written = digest.to_string();
        assert_eq!(digest.agrees_with(&written), Some(true));
        assert_eq!(Digest::default().agrees_with(&written), Some(false));
        let (_, digits) = written.split_once('.').expect("a form and digits");
        assert_eq!(digest.agrees_with(digits), None);
        let later = format!("{}.{digits}", FORM + 1);
        assert_eq!(digest.agrees_with(&later), None);
    }

    #[test]
    fn the_order_of_rows_does_not_matter_and_removal_undoes() {
        let mut one = Digest::default();
        one.add(Table::Trait, 1_u32, "A");
        one.add(Table::Trait, 2_u32, "B");
        let mut other = Digest::default();
        other.add(Table::Trait, 2_u32, "B");
        other.add(Table::Trait, 3_u32, "C");
        other.add(Table::Trait, 1_u32, "A");
        other.remove(Table::Trait, 3_u32, "C");
        assert_eq!(one, other);
    }

    #[test]
    fn rows_that_differ_only_in_where_a_text_ends_have_other_digests() {
        let mut one = Digest::default();
        one.add(Table::Trait, "A", "BC");
        let mut other = Digest::default();
        other.add(Table::Trait, "AB", "C");
        assert_ne!(one, other);
    }
}
