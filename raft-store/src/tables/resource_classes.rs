//! `resource_classes`: a resource class under its dense id.

use placement_model::Change;
use placement_model::state::change::{NameRow, ResourceClassId};
use placement_model::types::ResourceClassName;

use super::key::{key, one_u32};
use super::table::{Row, Table};
use crate::wire::{self, RecordVersion, WireError};

fn key_of(id: ResourceClassId) -> Vec<u8> {
    key(&[&id.0.to_be_bytes()])
}

pub(super) fn put(
    version: RecordVersion,
    id: ResourceClassId,
    row: &NameRow<ResourceClassName>,
) -> Row {
    Row::put(
        Table::ResourceClasses,
        key_of(id),
        wire::encode(version, row),
    )
}

pub(super) fn delete(id: ResourceClassId) -> Row {
    Row::delete(Table::ResourceClasses, key_of(id))
}

pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Change, WireError> {
    Ok(Change::PutResourceClass(
        ResourceClassId(one_u32(key)?),
        wire::decode(value)?,
    ))
}
