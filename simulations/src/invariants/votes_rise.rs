//! The vote that a node has made durable never falls while it runs (Raft paper, figure 2: currentTerm
//! increases monotonically; openraft orders votes by term, node, and whether a quorum has granted it).

use std::collections::BTreeMap;

use placement_raft_store::Vote;

use super::Role;

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
    /// What is wrong, in words.
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
