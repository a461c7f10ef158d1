//! Encoded rows decode to the same rows, and no input makes the decoder panic. `fixtures.rs` checks
//! the encoded values.

use std::collections::BTreeSet;

use placement_model::Change;
use placement_model::state::change::{ProviderId, ResourceClassId};
use placement_model::types::{ConsumerUuid, PartitionId};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Table, read, row};
use crate::fixtures::rows_of_all_tables;
use crate::wire::{RecordVersion, encode};

const VERSIONS: [RecordVersion; 2] = [RecordVersion::FIRST, RecordVersion::NEWEST];

/// A change that puts a row with any key.
fn put() -> impl Strategy<Value = Change> {
    let row = prop::sample::select(rows_of_all_tables());
    let keys = (
        any::<u16>(),
        any::<[u32; 2]>(),
        any::<[u64; 2]>(),
        ".{1,36}",
    );
    (row, keys).prop_map(|((_, row), (short, [id, other], [long, second], text))| {
        let provider = ProviderId(id);
        match row {
            Change::PutProvider(_, row) => Change::PutProvider(provider, row),
            Change::PutInventory(_, _, row) => {
                Change::PutInventory(provider, ResourceClassId(other), row)
            }
            Change::PutConsumer(_, row) => Change::PutConsumer(ConsumerUuid::from(text), row),
            Change::PutOutcome(_, _, row) => Change::PutOutcome(long, second, row),
            Change::PutJoin(_, row) => Change::PutJoin(long, row),
            Change::PutPartition(_, row) => Change::PutPartition(PartitionId(short), row),
            row => row,
        }
    })
}

proptest! {
    #[test]
    fn a_row_comes_back_as_it_was_written(change in put(), partition in any::<u16>()) {
        for version in VERSIONS {
            for partition in [PartitionId(partition), PartitionId::DEFAULT] {
                let row = row(version, partition, &change);
                let value = row.value.expect("a put has a value");
                let found = read(row.table, &row.key, &value);
                if row.table.is_cluster_wide() && !partition.is_default() {
                    prop_assert!(found.is_err());
                } else {
                    prop_assert_eq!(found, Ok((partition, change.clone())));
                }
                let longer = [row.key.as_slice(), &[0xff]].concat();
                prop_assert!(read(row.table, &longer, &value).is_err());
                prop_assert_eq!(Table::from_tag(row.table.tag()), Some(row.table));
            }
        }
    }

    #[test]
    fn damaged_rows_are_errors(change in put(), at in any::<prop::sample::Index>(), bit in 0..8) {
        for version in VERSIONS {
            let row = row(version, PartitionId::DEFAULT, &change);
            let mut value = row.value.expect("a put has a value");
            let at = at.index(value.len());
            value[at] ^= 1_u8 << bit;
            // Another value or an error, but no panic.
            let _ = read(row.table, &row.key, &value);
            value.truncate(at);
            prop_assert!(read(row.table, &row.key, &value).is_err());
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(
        table in 0..Table::ALL.len(),
        key in vec(any::<u8>(), 0..40),
        value in vec(any::<u8>(), 0..200),
    ) {
        let _ = read(Table::ALL[table], &key, &value);
        for version in VERSIONS {
            let byte = encode(version, &())[0];
            let value = [&[byte], value.as_slice()].concat();
            let _ = read(Table::ALL[table], &[&[0, 0], key.as_slice()].concat(), &value);
        }
    }
}

#[test]
fn empty_set_has_no_row() {
    for change in [
        Change::PutProviderTraits(ProviderId(1), BTreeSet::new()),
        Change::PutProviderAggregates(ProviderId(1), BTreeSet::new()),
    ] {
        let row = row(RecordVersion::NEWEST, PartitionId::DEFAULT, &change);
        assert_eq!(row.value, None);
    }
}
