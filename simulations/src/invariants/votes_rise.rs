//! The vote that a node has made durable never falls while it runs (Raft paper, figure 2:
//! currentTerm increases monotonically; openraft orders votes by term, node, and whether a quorum
//! has granted it): neither the one that the node speaks of, nor the one on its disk.

use std::collections::BTreeMap;

use placement_raft_store::Vote;

use super::{Hint, LogInvariant, Role};
use crate::logs::{Happened, Logs};

/// Its name in complaints.
pub const NAME: &str = "votes rise";

/// See the module.
#[derive(Debug, Default)]
pub struct VotesRise {
    /// Per node: its start and the vote it had then.
    votes: BTreeMap<u64, (u64, Vote)>,
}

impl VotesRise {
    /// Looks at what one node says of itself.
    ///
    /// # Errors
    /// What is wrong.
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

/// See the module: looks at the disk.
#[derive(Debug, Default)]
pub struct VotesOnDiskRise {
    /// Per node: the last vote that was written since its log was opened.
    votes: BTreeMap<u64, Vote>,
}

impl LogInvariant for VotesOnDiskRise {
    fn name(&self) -> &'static str {
        NAME
    }

    fn noted(&mut self, _logs: &Logs, hint: &Hint<'_>) -> Result<(), String> {
        let vote = match hint.happened {
            Happened::VoteSynced(vote) => *vote,
            Happened::Opened(..) => {
                // What a loss of power does to it, "votes are kept" says.
                self.votes.remove(&hint.node);
                return Ok(());
            }
            _ => return Ok(()),
        };
        match self.votes.insert(hint.node, vote) {
            Some(before) if before > vote => Err(format!(
                "node {} had {before} on disk, and has written {vote} over it",
                hint.node
            )),
            _ => Ok(()),
        }
    }
}
