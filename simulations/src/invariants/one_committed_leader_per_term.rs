//! Of the leaders of one term, at most one commits anything (election safety, Raft paper, figure
//! 3).
//!
//! openraft may elect two leaders in one term, as its votes are ordered by term and node; but a
//! quorum has moved on from the first before the second leads, and the second was not voted for by
//! who has what the first has committed.

use std::collections::BTreeMap;

use super::{Hint, LogInvariant};
use crate::logs::Logs;

/// Its name in complaints.
pub const NAME: &str = "one committed leader per term";

/// See the module.
#[derive(Debug, Default)]
pub struct OneCommittedLeaderPerTerm {
    leaders: BTreeMap<u64, u64>,
}

impl LogInvariant for OneCommittedLeaderPerTerm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn noted(&mut self, _logs: &Logs, hint: &Hint<'_>) -> Result<(), String> {
        for id in &hint.committed {
            let (term, node) = id.leader;
            let first = *self.leaders.entry(term).or_insert(node);
            if first != node {
                return Err(format!(
                    "{id} was committed, and node {first} has committed in that term too"
                ));
            }
        }
        Ok(())
    }
}
