//! `DELETE /resource_providers/{uuid}/inventories`

use super::inventories::{self, Stocks};
use super::{Decision, provider};
use crate::state::State;
use crate::state::change::Changes;
use crate::types::{ProviderUuid, Timestamp};

/// Removes all inventories. The generation rises even if there were none.
pub(super) fn delete_inventories(
    state: &State,
    at: Timestamp,
    provider: &ProviderUuid,
) -> Decision {
    let found = provider::find(state, provider)?;
    let mut changes = Changes::new();
    inventories::replace(state, &found, &Stocks::new(), at, &mut changes)?;
    Ok((found.written(at), changes))
}
