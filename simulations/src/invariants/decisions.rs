//! Which applied entries are decisions, for invariants that check each decision once.

use std::collections::BTreeSet;

use super::Applied;

/// Finds the entries that are decided now. The first node to apply an entry stands for all nodes:
/// other invariants compare the decisions of nodes.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// The highest index that was looked at.
    looked: u64,
    /// The write ids of decided entries, by which repeated entries are recognized.
    ids: BTreeSet<(u64, u64, u64)>,
}

impl Decisions {
    /// Whether the entry is decided now, and neither applied by another node before nor a
    /// repetition of an earlier entry.
    pub(super) fn is_new(&mut self, applied: &Applied<'_>) -> bool {
        if applied.index <= self.looked {
            return false;
        }
        self.looked = applied.index;
        let id = applied.stamped.write_id;
        id.is_none_or(|id| self.ids.insert((id.origin, id.boot, id.sequence)))
    }
}
