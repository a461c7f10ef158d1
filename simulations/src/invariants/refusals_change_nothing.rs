//! A refused command changes no inventories and no allocations: a request for several consumers
//! succeeds or fails as a whole (Placement's rule for `POST /allocations`; `Outcome::Refused`).
//! Consumer records and names may remain, as upstream leaves them.

use placement_model::state::change::RowKey;
use placement_model::types::ConsumerUuid;
use placement_model::{Change, Outcome};

use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "refusals change nothing";

/// Checks the changes of each refused command.
#[derive(Debug, Default)]
pub struct RefusalsChangeNothing;

impl Invariant for RefusalsChangeNothing {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        let Outcome::Refused(refusal) = applied.outcome else {
            return Ok(());
        };
        let before =
            |consumer: &ConsumerUuid| applied.before.consumer(consumer).map(|one| one.allocations);
        let after =
            |consumer: &ConsumerUuid| applied.after.consumer(consumer).map(|one| one.allocations);
        let held = |change: &&Change| match change.key() {
            RowKey::Provider(_)
            | RowKey::Inventory(..)
            | RowKey::ProviderTraits(_)
            | RowKey::ProviderAggregates(_) => true,
            RowKey::Consumer(consumer) => {
                before(&consumer).unwrap_or_default() != after(&consumer).unwrap_or_default()
            }
            _ => false,
        };
        match applied.changes.iter().find(held) {
            Some(change) => Err(format!("refused with {refusal:?}, but changed {change:?}")),
            None => Ok(()),
        }
    }
}
