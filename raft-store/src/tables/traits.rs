//! `traits`: a trait under its dense id.

use placement_model::Change;
use placement_model::state::change::{NameRow, TraitId};
use placement_model::types::TraitName;

use super::key::{key, one_u32};
use super::table::{Row, Table};
use crate::wire::{self, RecordVersion, WireError};

fn key_of(id: TraitId) -> Vec<u8> {
    key(&[&id.0.to_be_bytes()])
}

pub(super) fn put(version: RecordVersion, id: TraitId, row: &NameRow<TraitName>) -> Row {
    Row::put(Table::Traits, key_of(id), wire::encode(version, row))
}

pub(super) fn delete(id: TraitId) -> Row {
    Row::delete(Table::Traits, key_of(id))
}

pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Change, WireError> {
    Ok(Change::PutTrait(
        TraitId(one_u32(key)?),
        wire::decode(value)?,
    ))
}
