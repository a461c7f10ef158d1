//! `provider_aggregates`: a provider's aggregates under its dense id. A provider without
//! aggregates has no row.

use std::collections::BTreeSet;

use placement_model::Change;
use placement_model::state::change::ProviderId;
use placement_model::types::AggregateUuid;

use super::key::{key, one_u32};
use super::table::{Row, Table};
use crate::wire::{self, RecordVersion, WireError};

pub(super) fn put(
    version: RecordVersion,
    provider: ProviderId,
    aggregates: &BTreeSet<AggregateUuid>,
) -> Row {
    let key = key(&[&provider.0.to_be_bytes()]);
    if aggregates.is_empty() {
        Row::delete(Table::ProviderAggregates, key)
    } else {
        Row::put(
            Table::ProviderAggregates,
            key,
            wire::encode(version, aggregates),
        )
    }
}

pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Change, WireError> {
    Ok(Change::PutProviderAggregates(
        ProviderId(one_u32(key)?),
        wire::decode(value)?,
    ))
}
