//! The wire format towards other nodes: whatever bytes arrive, they are a value or an error.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use placement_raft_store::wire::{
    self, WireEntry, WireEntryRef, WireError, WireSnapshotMeta, WireStoredMembership, WireVote,
};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(mut bytes in vec(any::<u8>(), 0..300)) {
        for _ in 0..2 {
            let _ = wire::decode::<WireEntry>(&bytes).and_then(WireEntry::into_entry);
            let _ = wire::decode::<WireVote>(&bytes);
            let _ = wire::decode::<WireStoredMembership>(&bytes);
            let _ = wire::decode::<WireSnapshotMeta>(&bytes);
            bytes.insert(0, wire::VERSION);
        }
    }

    #[test]
    fn a_damaged_entry_is_another_entry_or_an_error(
        index in 0..5_u64, at in any::<prop::sample::Index>(), bit in 0..8,
    ) {
        let entry = &common::history(4)[usize::try_from(index).unwrap()];
        let mut bytes = wire::encode(&WireEntryRef::from(entry));
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        let _ = wire::decode::<WireEntry>(&bytes).and_then(WireEntry::into_entry);
        bytes.truncate(at);
        prop_assert!(wire::decode::<WireEntry>(&bytes).is_err());
    }
}

#[test]
fn an_entry_comes_back_as_it_was_written() {
    for entry in common::history(20) {
        let bytes = wire::encode(&WireEntryRef::from(&entry));
        assert_eq!(
            wire::decode::<WireEntry>(&bytes).unwrap().into_entry(),
            Ok(entry)
        );
    }
}

#[test]
fn a_record_of_a_newer_version_says_so() {
    let mut bytes = wire::encode(&7_u64);
    bytes[0] = wire::VERSION + 1;
    assert_eq!(wire::decode::<u64>(&bytes), Err(WireError::Newer(2)));
    assert_eq!(wire::decode::<u64>(&[]), Err(WireError::Empty));
    assert!(matches!(
        wire::decode::<u64>(&[1, 7, 7]),
        Err(WireError::Damaged(_))
    ));
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    // An array in an array in an array...
    let bytes: Vec<u8> = std::iter::once(wire::VERSION)
        .chain([0x91; 100_000])
        .collect();
    assert!(wire::decode::<WireEntry>(&bytes).is_err());
}
