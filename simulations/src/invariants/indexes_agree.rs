//! All data derived from the rows (trees, indexes, running sums, allocations by holder) equals the
//! same data computed again from the rows (`State::agrees_with_recount`). Digests do not cover
//! derived data, so each node is checked: after a start, after a snapshot, and then periodically.

use std::collections::BTreeMap;

use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "indexes agree";

/// Commands between two checks. A check costs as much as loading the state.
const EVERY: u64 = 16;

/// Checks the derived data of each node periodically.
#[derive(Debug, Default)]
pub struct IndexesAgree {
    last: BTreeMap<u64, (u64, u64)>,
}

impl Invariant for IndexesAgree {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        let Applied {
            node, start, index, ..
        } = applied;
        let last = self.last.insert(*node, (*start, *index));
        let goes_on = last == Some((*start, index - 1));
        if goes_on && !index.is_multiple_of(EVERY) {
            return Ok(());
        }
        if applied.before.agrees_with_recount() {
            Ok(())
        } else {
            Err("the data derived from the rows does not match the rows".to_owned())
        }
    }
}
