//! Each committed membership differs from the previous one in at most one node (Raft thesis, 4.1),
//! and only by a change that an operator ordered: the node joins as a learner, leaves, becomes a
//! voter or becomes a learner. An acknowledged change stays until another order reverts it: the
//! product decides each change on the membership that it replaces.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{LogInvariant, LogObservation};
use crate::logs::{EntryId, Logs, Members};

/// Name of the invariant in violations.
pub const NAME: &str = "members change as ordered";

/// How one node's membership changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// The node is added, as a learner.
    Joins,
    /// A learner becomes a voter.
    GetsVote,
    /// A voter becomes a learner.
    LosesVote,
    /// The node is removed.
    Leaves,
}

/// Changes that may happen because an operator ordered them, with the number of such orders.
#[derive(Debug, Clone, Default)]
pub struct OrderedChanges(Arc<Mutex<BTreeMap<(u64, Change), usize>>>);

impl OrderedChanges {
    /// Permits these changes from now on.
    pub fn begin(&self, changes: &[(u64, Change)]) {
        let mut ordered = self.0.lock();
        for change in changes {
            *ordered.entry(*change).or_default() += 1;
        }
    }

    /// Withdraws one permission for these changes: the order has ended, and no part of it is in
    /// progress.
    pub fn end(&self, changes: &[(u64, Change)]) {
        let mut ordered = self.0.lock();
        for change in changes {
            *ordered.entry(*change).or_default() -= 1;
        }
    }

    fn permits(&self, change: (u64, Change)) -> bool {
        self.0.lock().get(&change).is_some_and(|orders| *orders > 0)
    }
}

/// Checks committed memberships against the orders.
#[derive(Debug)]
pub struct MembersChangeAsOrdered {
    ordered: OrderedChanges,
    last: Option<(EntryId, Members)>,
}

impl MembersChangeAsOrdered {
    /// An invariant that permits the changes in `ordered`.
    pub fn new(ordered: OrderedChanges) -> Self {
        Self {
            ordered,
            last: None,
        }
    }
}

impl LogInvariant for MembersChangeAsOrdered {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check_change(&mut self, logs: &Logs, hint: &LogObservation<'_>) -> Result<(), String> {
        for id in &hint.committed {
            let Some(members) = logs.node(hint.node).members.get(&id.index) else {
                continue;
            };
            let Some((before, earlier)) = self.last.replace((*id, members.clone())) else {
                continue;
            };
            let changed = changed(&earlier, members);
            let is_ordered = changed.iter().all(|change| self.ordered.permits(*change));
            if changed.len() > 1 || !is_ordered {
                return Err(format!(
                    "from the membership of {before} to that of {id} the changes are {changed:?}: \
                     {earlier:?} and {members:?}"
                ));
            }
        }
        Ok(())
    }
}

/// The differences between two memberships; each maps a member to whether it is a voter.
fn changed(before: &Members, after: &Members) -> Vec<(u64, Change)> {
    let all: BTreeSet<u64> = before.keys().chain(after.keys()).copied().collect();
    let change = |node: u64| {
        let change = match (before.get(&node), after.get(&node)) {
            (None, Some(_)) => Change::Joins,
            (Some(_), None) => Change::Leaves,
            (Some(false), Some(true)) => Change::GetsVote,
            (Some(true), Some(false)) => Change::LosesVote,
            _ => return None,
        };
        Some((node, change))
    };
    all.into_iter().filter_map(change).collect()
}
