//! A leader has voted for itself (Raft paper, 5.2), and has that vote on disk before it writes
//! entries of its own: otherwise it might vote for another in its term after a crash, as any voter
//! might.

use std::collections::BTreeSet;

use super::{Hint, LogInvariant, Role};
use crate::logs::{Happened, Logs};

/// Its name in complaints.
pub const NAME: &str = "a leader holds its own vote";

/// Looks at what one node says of itself.
///
/// # Errors
/// What is wrong.
pub fn observe(role: &Role) -> Result<(), String> {
    let Role { node, vote, .. } = role;
    match role.leads && vote.leader_id.node_id != *node {
        true => Err(format!("{NAME}: node {node} leads, but has voted {vote}")),
        false => Ok(()),
    }
}

/// See the module: looks at each leader's first entry, when that is taken into its own log.
#[derive(Debug, Default)]
pub struct OwnVote {
    leaders: BTreeSet<(u64, u64)>,
}

impl LogInvariant for OwnVote {
    fn name(&self) -> &'static str {
        NAME
    }

    fn noted(&mut self, logs: &Logs, hint: &Hint<'_>) -> Result<(), String> {
        let Happened::Appended(written) = hint.happened else {
            return Ok(());
        };
        let leader = written.id.leader;
        // The entries of its forming have no leader.
        if leader.1 != hint.node || leader.0 == 0 || !self.leaders.insert(leader) {
            return Ok(());
        }
        let vote = logs.of(hint.node).vote;
        let voted = vote.map(|vote| (vote.leader_id.term, vote.leader_id.node_id));
        match voted == Some(leader) {
            true => Ok(()),
            false => Err(format!(
                "node {} leads in term {}, and has the vote {vote:?} on disk",
                leader.1, leader.0
            )),
        }
    }
}
