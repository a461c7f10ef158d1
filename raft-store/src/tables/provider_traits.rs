//! `provider_traits`: the dense ids of a provider's traits under its own. A provider without
//! traits has no row.

use std::collections::BTreeSet;

use placement_model::Change;
use placement_model::state::change::{ProviderId, TraitId};

use super::key::{key, one_u32};
use super::table::{Row, Table};
use crate::wire::{self, RecordVersion, WireError};

pub(super) fn put(version: RecordVersion, provider: ProviderId, traits: &BTreeSet<TraitId>) -> Row {
    let key = key(&[&provider.0.to_be_bytes()]);
    if traits.is_empty() {
        Row::delete(Table::ProviderTraits, key)
    } else {
        Row::put(Table::ProviderTraits, key, wire::encode(version, traits))
    }
}

pub(super) fn read(key: &[u8], value: &[u8]) -> Result<Change, WireError> {
    Ok(Change::PutProviderTraits(
        ProviderId(one_u32(key)?),
        wire::decode(value)?,
    ))
}
