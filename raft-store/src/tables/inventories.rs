//! `inventories`: an inventory under its provider's and its class's dense ids.

use placement_model::Change;
use placement_model::state::change::{InventoryRow, ProviderId, ResourceClassId};

use super::key::{key, two_u32};
use super::table::{Row, Table};
use crate::wire::{self, RecordVersion, WireError};

fn key_of(provider: ProviderId, class: ResourceClassId) -> Vec<u8> {
    key(&[&provider.0.to_be_bytes(), &class.0.to_be_bytes()])
}

pub(super) fn put(
    version: RecordVersion,
    provider: ProviderId,
    class: ResourceClassId,
    row: &InventoryRow,
) -> Row {
    Row::put(
        Table::Inventories,
        key_of(provider, class),
        wire::encode(version, row),
    )
}

pub(super) fn delete(provider: ProviderId, class: ResourceClassId) -> Row {
    Row::delete(Table::Inventories, key_of(provider, class))
}

pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Change, WireError> {
    let (provider, class) = two_u32(key)?;
    let row = wire::decode(value)?;
    Ok(Change::PutInventory(
        ProviderId(provider),
        ResourceClassId(class),
        row,
    ))
}
