//! The vote of a running node never falls: neither the vote that the node reports nor the vote that
//! it writes to disk (Raft paper, figure 2: currentTerm increases monotonically; openraft orders
//! votes by term, node, and whether a quorum granted them).

use std::collections::BTreeMap;

use placement_raft_store::Vote;

use super::{LogInvariant, LogObservation, Role};
use crate::logs::{LogChange, Logs};

/// Name of the invariant in violations.
pub const NAME: &str = "votes rise";

/// Checks the votes that nodes report.
#[derive(Debug, Default)]
pub struct VotesRise {
    /// Last vote of each node, with the start in which it had it.
    votes: BTreeMap<u64, (u64, Vote)>,
}

impl VotesRise {
    /// Checks the role that one node reports.
    ///
    /// # Errors
    /// Description of the violation.
    pub fn observe(&mut self, role: &Role) -> Result<(), String> {
        let Role {
            node, start, vote, ..
        } = role;
        match self.votes.insert(*node, (*start, *vote)) {
            Some((then, before)) if then == *start && before > *vote => Err(format!(
                "{NAME}: node {node} went back from {before} to {vote}"
            )),
            _ => Ok(()),
        }
    }
}

/// Checks the votes that are written to disk.
#[derive(Debug, Default)]
pub struct VotesOnDiskRise {
    /// The last vote written by each node since its log was opened.
    votes: BTreeMap<u64, Vote>,
}

impl LogInvariant for VotesOnDiskRise {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check_change(&mut self, _logs: &Logs, hint: &LogObservation<'_>) -> Result<(), String> {
        let vote = match hint.happened {
            LogChange::VoteSynced(vote) => *vote,
            LogChange::Opened(..) => {
                // Votes lost with the power are checked by "votes are kept".
                self.votes.remove(&hint.node);
                return Ok(());
            }
            _ => return Ok(()),
        };
        match self.votes.insert(hint.node, vote) {
            Some(before) if before > vote => Err(format!(
                "node {} had {before} on disk and overwrote it with {vote}",
                hint.node
            )),
            _ => Ok(()),
        }
    }
}
