//! The wire format: any received bytes decode to a value or an error.

use crate::common;
use placement_raft_store::wire::{
    self, RecordVersion, WireEntry, WireError, WireSnapshotMeta, WireStoredMembership, WireVote,
};
use proptest::collection::vec;
use proptest::prelude::*;

const VERSIONS: [RecordVersion; 2] = [RecordVersion::FIRST, RecordVersion::NEWEST];

/// The first byte of every record of a version.
fn byte(version: RecordVersion) -> u8 {
    wire::encode(version, &())[0]
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes in vec(any::<u8>(), 0..300)) {
        let record = |version| [&[byte(version)], bytes.as_slice()].concat();
        for bytes in [bytes.clone()].into_iter().chain(VERSIONS.map(record)) {
            let _ = wire::decode::<WireEntry>(&bytes).and_then(WireEntry::into_entry);
            let _ = wire::decode::<WireVote>(&bytes);
            let _ = wire::decode::<WireStoredMembership>(&bytes);
            let _ = wire::decode::<WireSnapshotMeta>(&bytes);
        }
    }

    #[test]
    fn a_damaged_entry_is_another_entry_or_an_error(
        index in 0..5_u64, at in any::<prop::sample::Index>(), bit in 0..8,
    ) {
        let entry = &common::history(4)[usize::try_from(index).unwrap()];
        for version in VERSIONS {
            let mut bytes = wire::encode(version, &WireEntry::from(entry));
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            let _ = wire::decode::<WireEntry>(&bytes).and_then(WireEntry::into_entry);
            bytes.truncate(at);
            prop_assert!(wire::decode::<WireEntry>(&bytes).is_err());
        }
    }
}

#[test]
fn a_record_of_a_newer_version_says_so() {
    let mut bytes = wire::encode(RecordVersion::NEWEST, &7_u64);
    let newer = byte(RecordVersion::NEWEST) + 1;
    bytes[0] = newer;
    assert_eq!(wire::decode::<u64>(&bytes), Err(WireError::Newer(newer)));
    assert_eq!(wire::decode::<u64>(&[]), Err(WireError::Empty));
    for left_over in [7, 0xc0] {
        let read = wire::decode::<u64>(&[1, 7, left_over]);
        assert!(matches!(read, Err(WireError::Damaged(_))));
    }
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    // An array in an array in an array...
    for version in VERSIONS {
        let bytes: Vec<u8> = std::iter::once(byte(version))
            .chain([0x91; 100_000])
            .collect();
        assert!(wire::decode::<WireEntry>(&bytes).is_err());
    }
}
