//! Each membership that is committed is the one before it, changed in one node at most (Raft
//! thesis, 4.1), and only as an operator has ordered: the node joins as a learner or leaves, gets a
//! vote or loses it. What was acknowledged stays until another order changes it: the product
//! decides each change on the membership that it replaces.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Hint, LogInvariant};
use crate::logs::{EntryId, Logs, Members};

/// Its name in complaints.
pub const NAME: &str = "members change as ordered";

/// How a membership changes in one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It comes, as a learner.
    Joins,
    /// A learner becomes a voter.
    GetsVote,
    /// A voter becomes a learner.
    LosesVote,
    /// It is no member any more.
    Leaves,
}

/// The changes that operators have ordered and that may still be carried out, with the number of
/// orders for each.
#[derive(Debug, Clone, Default)]
pub struct Ordered(Arc<Mutex<BTreeMap<(u64, Change), usize>>>);

impl Ordered {
    /// From now on these changes may be carried out.
    pub fn begin(&self, changes: &[(u64, Change)]) {
        let mut ordered = self.0.lock();
        for change in changes {
            *ordered.entry(*change).or_default() += 1;
        }
    }

    /// An order for these has ended, and nothing of it is under way.
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

/// See the module.
#[derive(Debug)]
pub struct MembersChangeAsOrdered {
    ordered: Ordered,
    last: Option<(EntryId, Members)>,
}

impl MembersChangeAsOrdered {
    /// With what is ordered.
    pub fn new(ordered: Ordered) -> Self {
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

    fn noted(&mut self, logs: &Logs, hint: &Hint<'_>) -> Result<(), String> {
        for id in &hint.committed {
            let Some(members) = logs.of(hint.node).members.get(&id.index) else {
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

/// What changes from one membership to the next. In both, each member has a vote or not.
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
