//! Whatever is derived from the rows (trees, indexes, running sums, who holds what) is what a
//! recount gives (`State::agrees_with_recount`). Digests say nothing of it, so each node is looked
//! at: when it has started, after a snapshot, and then every so many commands.

use std::collections::BTreeMap;

use super::{Applied, Invariant};

/// Its name in complaints.
pub const NAME: &str = "indexes agree";

/// A recount costs as much as loading the state.
const EVERY: u64 = 16;

/// See the module.
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
        match applied.before.agrees_with_recount() {
            true => Ok(()),
            false => Err("what is derived from the rows is not what a recount gives".to_owned()),
        }
    }
}
