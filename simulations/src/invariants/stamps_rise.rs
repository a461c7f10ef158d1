//! The timestamps that leaders put on commands rise strictly along the log, however wrong their
//! clocks are (`node/cluster/src/write/proposals.rs`; timestamps of the API must not go back).

use std::collections::BTreeMap;

use placement_model::types::Timestamp;

use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "stamps rise";

/// Compares the timestamp of each entry with its neighbours'.
#[derive(Debug, Default)]
pub struct StampsRise {
    stamps: BTreeMap<u64, Timestamp>,
}

impl Invariant for StampsRise {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        let (index, at) = (applied.index, applied.stamped.at);
        if self.stamps.insert(index, at).is_some() {
            return Ok(());
        }
        let before = self.stamps.range(..index).next_back();
        let after = self.stamps.range(index + 1..).next();
        match (before, after) {
            (Some((place, before)), _) if *before >= at => {
                Err(format!("stamped {}, but {place} has {}", at.0, before.0))
            }
            (_, Some((place, after))) if *after <= at => {
                Err(format!("stamped {}, but {place} has {}", at.0, after.0))
            }
            _ => Ok(()),
        }
    }
}
