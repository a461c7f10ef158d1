//! `partitions`: a partition that was made, under its id; the default one has no row.

use placement_model::Change;
use placement_model::state::change::PartitionRow;
use placement_model::types::PartitionId;

use super::key::{fixed, key};
use super::table::{Row, Table};
use crate::wire::{self, RecordVersion, WireError};

pub(super) fn put(version: RecordVersion, id: PartitionId, row: &PartitionRow) -> Row {
    Row::put(
        Table::Partitions,
        key(&[&id.0.to_be_bytes()]),
        wire::encode(version, row),
    )
}

pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Change, WireError> {
    let id = PartitionId(u16::from_be_bytes(fixed(key)?));
    Ok(Change::PutPartition(id, wire::decode(value)?))
}
