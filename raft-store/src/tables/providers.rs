//! `providers`: a resource provider under its dense id.

use placement_model::Change;
use placement_model::state::change::{ProviderId, ProviderRow};

use super::key::{key, one_u32};
use super::table::{Row, Table};
use crate::wire::{self, RecordVersion, WireError};

fn key_of(id: ProviderId) -> Vec<u8> {
    key(&[&id.0.to_be_bytes()])
}

pub(super) fn put(version: RecordVersion, id: ProviderId, row: &ProviderRow) -> Row {
    Row::put(Table::Providers, key_of(id), wire::encode(version, row))
}

pub(super) fn delete(id: ProviderId) -> Row {
    Row::delete(Table::Providers, key_of(id))
}

pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Change, WireError> {
    Ok(Change::PutProvider(
        ProviderId(one_u32(key)?),
        wire::decode(value)?,
    ))
}
