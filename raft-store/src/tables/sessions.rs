//! `sessions`: how far a node's writes have come, under the node's id.

use placement_model::Change;
use placement_model::state::change::SessionRow;

use super::key::{key, one_u64};
use super::table::{Row, Table};
use crate::wire::{self, RecordVersion, WireError};

pub(super) fn put(version: RecordVersion, origin: u64, row: &SessionRow) -> Row {
    Row::put(
        Table::Sessions,
        key(&[&origin.to_be_bytes()]),
        wire::encode(version, row),
    )
}

pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Change, WireError> {
    Ok(Change::PutSession(one_u64(key)?, wire::decode(value)?))
}
