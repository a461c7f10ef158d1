//! `joins`: nodes that are to join or to take the place of others, under their numbers. Of the cluster, whatever the
//! partition.

use placement_model::Change;
use placement_model::state::change::JoinRow;

use super::key::{key, one_u64};
use super::table::{Row, Table};
use crate::wire::{self, RecordVersion, WireError};

pub(super) fn put(version: RecordVersion, node: u64, row: &JoinRow) -> Row {
    Row::put(
        Table::Joins,
        key(&[&node.to_be_bytes()]),
        wire::encode(version, row),
    )
}

pub(super) fn delete(node: u64) -> Row {
    Row::delete(Table::Joins, key(&[&node.to_be_bytes()]))
}

pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Change, WireError> {
    Ok(Change::PutJoin(one_u64(key)?, wire::decode(value)?))
}
