//! A committed entry never changes: every node applies the same command at the same index and
//! decides the same (state machine safety, Raft paper, figure 3; purity of
//! `placement_model::apply`).

use std::collections::BTreeMap;

use placement_model::{Outcome, Stamped};

use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "commit immutability";

/// Remembers the first applied command and outcome of every index.
#[derive(Debug, Default)]
pub struct CommitImmutable {
    seen: BTreeMap<u64, (Stamped, Outcome)>,
}

impl Invariant for CommitImmutable {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        let now = (applied.stamped.clone(), applied.outcome.clone());
        let first = self
            .seen
            .entry(applied.index)
            .or_insert_with(|| now.clone());
        if *first == now {
            Ok(())
        } else {
            Err(format!("was {first:?}, is {now:?}"))
        }
    }
}
