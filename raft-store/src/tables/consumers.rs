//! `consumers`: a consumer, with all that it has, under its UUID as it is spelled.

use placement_model::Change;
use placement_model::state::change::ConsumerRow;
use placement_model::types::ConsumerUuid;

use super::key::{key, text};
use super::table::{Row, Table};
use crate::wire::{self, RecordVersion, WireError};

fn key_of(consumer: &ConsumerUuid) -> Vec<u8> {
    key(&[consumer.to_string().as_bytes()])
}

pub(super) fn put(version: RecordVersion, consumer: &ConsumerUuid, row: &ConsumerRow) -> Row {
    Row::put(
        Table::Consumers,
        key_of(consumer),
        wire::encode(version, row),
    )
}

pub(super) fn delete(consumer: &ConsumerUuid) -> Row {
    Row::delete(Table::Consumers, key_of(consumer))
}

pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Change, WireError> {
    Ok(Change::PutConsumer(
        ConsumerUuid::from(text(key)?),
        wire::decode(value)?,
    ))
}
