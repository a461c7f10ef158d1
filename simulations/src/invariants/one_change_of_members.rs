//! Each membership differs from the one before it in one node at most: it comes as a learner or goes, gets a vote
//! or loses it (Raft thesis, 4.1; and the product decides each change on the membership that it replaces). Two
//! operators at once get this order by order, or a conflict.

use std::collections::BTreeSet;

use super::{Hint, LogInvariant};
use crate::logs::{EntryId, Logs, Members};

/// Its name in complaints.
pub const NAME: &str = "one change of members at a time";

/// See the module.
#[derive(Debug, Default)]
pub struct OneChangeOfMembers {
    last: Option<(EntryId, Members)>,
}

impl LogInvariant for OneChangeOfMembers {
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
            if changed.len() > 1 {
                return Err(format!(
                    "the membership of {id} differs from that of {before} in nodes {changed:?}: \
                     {earlier:?} and {members:?}"
                ));
            }
        }
        Ok(())
    }
}

/// The nodes that are not the same in both.
fn changed(before: &Members, after: &Members) -> BTreeSet<u64> {
    let all = before.keys().chain(after.keys());
    all.filter(|node| before.get(node) != after.get(node))
        .copied()
        .collect()
}
