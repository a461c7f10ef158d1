//! `counters`: the next ids to hand out, in one row.

use placement_model::Change;
use placement_model::state::change::Counters;

use super::key::{fixed, key};
use super::table::{Row, Table};
use crate::wire::{self, RecordVersion, WireError};

pub(super) fn put(version: RecordVersion, counters: &Counters) -> Row {
    Row::put(Table::Counters, key(&[]), wire::encode(version, counters))
}

pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Change, WireError> {
    let [] = fixed(key)?;
    Ok(Change::PutCounters(wire::decode(value)?))
}
