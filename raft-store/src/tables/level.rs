//! `level`: the feature level of the cluster, in one row, once it was raised.

use placement_model::{Change, Level};

use super::key::{fixed, key};
use super::table::{Row, Table};
use crate::wire::{self, RecordVersion, WireError};

pub(super) fn put(version: RecordVersion, level: Level) -> Row {
    Row::put(Table::Level, key(&[]), wire::encode(version, &level))
}

pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Change, WireError> {
    let [] = fixed(key)?;
    Ok(Change::PutLevel(wire::decode(value)?))
}
