//! `DELETE /resource_providers/{uuid}/traits`

use std::collections::BTreeSet;

use super::{Decision, provider};
use crate::state::State;
use crate::state::change::{Change, Changes};
use crate::types::{ProviderUuid, Timestamp};

/// Takes all traits off a provider. No generation is asked for; it rises if there were any.
pub(super) fn clear_provider_traits(
    state: &State,
    at: Timestamp,
    provider: &ProviderUuid,
) -> Decision {
    let found = provider::find(state, provider)?;
    if found.node.traits.is_empty() {
        return Ok((found.kept(at), Changes::new()));
    }
    let changes = vec![
        Change::PutProviderTraits(found.node.id, BTreeSet::new()),
        found.bump(at),
    ];
    Ok((found.written(at), changes))
}
