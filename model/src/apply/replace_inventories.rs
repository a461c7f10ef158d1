//! `PUT /resource_providers/{uuid}/inventories`

use super::{Decide, Decision, inventories, provider};
use crate::command::ReplaceInventories;
use crate::state::State;
use crate::state::change::Changes;
use crate::types::Timestamp;

/// Replaces all inventories of a provider: generation, capacities, classes, use, in this order.
impl Decide for ReplaceInventories {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = provider::find(state, &self.provider)?;
        found.check_generation(self.generation)?;
        inventories::check_capacity(&found, &self.inventories, self.capacity_rule)?;
        let stocks = inventories::stocks(state, &self.inventories)?;
        let mut changes = Changes::new();
        inventories::replace(state, &found, &stocks, at, &mut changes)?;
        Ok((found.written(at), changes))
    }
}
