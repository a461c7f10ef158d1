//! A leader has voted for itself (Raft paper, 5.2), and this vote is on its disk before it appends
//! entries of its own. Otherwise it could vote for another node in the same term after a crash.

use std::collections::BTreeSet;

use super::{LogInvariant, LogObservation, Role};
use crate::logs::{LogChange, Logs};

/// Name of the invariant in violations.
pub const NAME: &str = "a leader holds its own vote";

/// Checks the role that one node reports.
///
/// # Errors
/// Description of the violation.
pub fn observe(role: &Role) -> Result<(), String> {
    let Role { node, vote, .. } = role;
    if role.leads && vote.leader_id.node_id != *node {
        Err(format!("{NAME}: node {node} leads, but its vote is {vote}"))
    } else {
        Ok(())
    }
}

/// Checks the vote on a leader's disk when the leader appends its first entry.
#[derive(Debug, Default)]
pub struct OwnVote {
    leaders: BTreeSet<(u64, u64)>,
}

impl LogInvariant for OwnVote {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check_change(&mut self, logs: &Logs, hint: &LogObservation<'_>) -> Result<(), String> {
        let LogChange::Appended(written) = hint.happened else {
            return Ok(());
        };
        let leader = written.id.leader;
        // Entries that form the cluster have no leader.
        if leader.1 != hint.node || leader.0 == 0 || !self.leaders.insert(leader) {
            return Ok(());
        }
        let vote = logs.node(hint.node).vote;
        let voted = vote.map(|vote| (vote.leader_id.term, vote.leader_id.node_id));
        if voted == Some(leader) {
            Ok(())
        } else {
            Err(format!(
                "node {} leads in term {}, but has the vote {vote:?} on disk",
                leader.1, leader.0
            ))
        }
    }
}
