//! `DELETE /resource_providers/{uuid}/inventories`

use super::inventories::{self, Stocks};
use super::{Decide, Decision, provider};
use crate::command::DeleteInventories;
use crate::state::State;
use crate::state::change::Changes;
use crate::types::Timestamp;

/// Removes all inventories. The generation rises even if there were none.
impl Decide for DeleteInventories {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let found = provider::find(state, &self.provider)?;
        let mut changes = Changes::new();
        inventories::replace(state, &found, &Stocks::new(), at, &mut changes)?;
        Ok((found.written(at), changes))
    }
}
