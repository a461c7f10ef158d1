//! At most one leader per term commits entries (election safety, Raft paper, figure 3).
//!
//! openraft may elect two leaders in one term, as it orders votes by term and node. But a quorum
//! has stopped following the first leader before the second one leads, and no node that has the
//! first leader's committed entries votes for a second leader that lacks them.

use std::collections::BTreeMap;

use super::{LogInvariant, LogObservation};
use crate::logs::Logs;

/// Name of the invariant in violations.
pub const NAME: &str = "one committed leader per term";

/// Remembers the leader of every term in which an entry was committed.
#[derive(Debug, Default)]
pub struct OneCommittedLeaderPerTerm {
    leaders: BTreeMap<u64, u64>,
}

impl LogInvariant for OneCommittedLeaderPerTerm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check_change(&mut self, _logs: &Logs, hint: &LogObservation<'_>) -> Result<(), String> {
        for id in &hint.committed {
            let (term, node) = id.leader;
            let first = *self.leaders.entry(term).or_insert(node);
            if first != node {
                return Err(format!(
                    "{id} was committed, but node {first} also committed in that term"
                ));
            }
        }
        Ok(())
    }
}
