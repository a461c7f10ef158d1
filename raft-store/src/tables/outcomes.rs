//! `outcomes`: what a write was answered, under the node it came from and its sequence there.

use placement_model::{Change, Outcome};

use super::key::{key, two_u64};
use super::table::{Row, Table};
use crate::wire::{self, RecordVersion, WireError};

fn key_of(origin: u64, sequence: u64) -> Vec<u8> {
    key(&[&origin.to_be_bytes(), &sequence.to_be_bytes()])
}

pub(super) fn put(version: RecordVersion, origin: u64, sequence: u64, outcome: &Outcome) -> Row {
    Row::put(
        Table::Outcomes,
        key_of(origin, sequence),
        wire::encode(version, outcome),
    )
}

pub(super) fn delete(origin: u64, sequence: u64) -> Row {
    Row::delete(Table::Outcomes, key_of(origin, sequence))
}

pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Change, WireError> {
    let (origin, sequence) = two_u64(key)?;
    Ok(Change::PutOutcome(origin, sequence, wire::decode(value)?))
}
