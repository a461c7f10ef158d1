//! Rows come back as they were written, and no bytes whatever make the reader panic. Which values come back is in
//! `fixtures.rs`.

use std::collections::BTreeSet;
use std::fmt::Debug;

use placement_model::Change;
use placement_model::state::change::ProviderId;
use placement_model::types::PartitionId;
use proptest::collection::vec;
use proptest::prelude::*;

use super::key::{self, Key};
use super::{Table, read, row};
use crate::fixtures::rows_of_all_tables;
use crate::wire::{RecordVersion, encode};

const VERSIONS: [RecordVersion; 2] = [RecordVersion::FIRST, RecordVersion::NEWEST];

/// Any change that puts a row, and its partition.
fn put() -> impl Strategy<Value = (PartitionId, Change)> {
    prop::sample::select(rows_of_all_tables())
}

fn assert_comes_back<K: Key + PartialEq + Debug>(row: &K) {
    let bytes = key::key_of(PartitionId(7), row);
    assert_eq!(key::partition(&bytes), Ok(PartitionId(7)));
    assert_eq!(key::rest::<K>(&bytes).as_ref(), Ok(row));
    assert!(key::rest::<K>(&[bytes.as_slice(), &[0xff]].concat()).is_err());
}

proptest! {
    #[test]
    fn a_key_comes_back_as_it_was_written(
        short in any::<u16>(), pair in any::<[u32; 2]>(), long in any::<[u64; 2]>(), text in ".{1,36}",
    ) {
        assert_comes_back(&());
        assert_comes_back(&short);
        assert_comes_back(&pair[0]);
        assert_comes_back(&(pair[0], pair[1]));
        assert_comes_back(&long[0]);
        assert_comes_back(&(long[0], long[1]));
        assert_comes_back(&text);
    }

    #[test]
    fn a_row_comes_back_as_it_was_written((_, change) in put(), partition in any::<u16>()) {
        for version in VERSIONS {
            for partition in [PartitionId(partition), PartitionId::DEFAULT] {
                let row = row(version, partition, &change);
                let value = row.value.expect("a put has a value");
                let found = read(row.table, &row.key, &value);
                if row.table.is_of_the_cluster() && !partition.is_default() {
                    prop_assert!(found.is_err());
                } else {
                    prop_assert_eq!(found, Ok((partition, change.clone())));
                }
                prop_assert_eq!(Table::of_tag(row.table.tag()), Some(row.table));
            }
        }
    }

    #[test]
    fn damaged_rows_are_errors((_, change) in put(), at in any::<prop::sample::Index>(), bit in 0..8) {
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
fn an_empty_set_is_no_row() {
    for change in [
        Change::PutProviderTraits(ProviderId(1), BTreeSet::new()),
        Change::PutProviderAggregates(ProviderId(1), BTreeSet::new()),
    ] {
        let row = row(RecordVersion::NEWEST, PartitionId::DEFAULT, &change);
        assert_eq!(row.value, None);
    }
}
