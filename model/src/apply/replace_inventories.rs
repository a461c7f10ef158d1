//! `PUT /resource_providers/{uuid}/inventories`

use std::collections::BTreeMap;

use super::{Decision, inventories, provider};
use crate::command::CapacityRule;
use crate::state::State;
use crate::state::change::Changes;
use crate::types::{Generation, Inventory, ProviderUuid, ResourceClassName, Timestamp};

/// Replaces all inventories of a provider: generation, capacities, classes, use, in this order.
pub(super) fn replace_inventories(
    state: &State,
    at: Timestamp,
    provider: &ProviderUuid,
    generation: Generation,
    inventories: &BTreeMap<ResourceClassName, Inventory>,
    rule: CapacityRule,
) -> Decision {
    let found = provider::find(state, provider)?;
    found.check_generation(generation)?;
    inventories::check_capacity(&found, inventories, rule)?;
    let stocks = inventories::stocks(state, inventories)?;
    let mut changes = Changes::new();
    inventories::replace(state, &found, &stocks, at, &mut changes)?;
    Ok((found.written(at), changes))
}
