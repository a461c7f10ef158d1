//! Votes and leaders, as far as they can be seen from outside of the nodes.
//!
//! A leader is a term and a node. Votes are totally ordered by (term, node, granted by a quorum):
//! a voter that granted (3, node 2) may go on to grant (3, node 4), so one term may see several
//! leaders. Of them only the last can commit, as a quorum has moved on from the others. "One leader
//! per term" is therefore no promise here. What is one:
//!
//! * **votes rise**: the vote that a node has made durable never falls while it runs.
//! * **a leader holds its own vote**: whoever leads has voted for itself.
//! * **one start per leader**: a node that led in a term and was started again has to be elected in
//!   a higher one. If its vote was lost, it may be elected as the same leader again and write other
//!   entries under the same names.
//!
//! That a vote outlives a loss of power is for the disk to say:
//! [`SimulatedDisk::lost_vote`](placement_raft_store::simulation::SimulatedDisk::lost_vote).

use std::collections::BTreeMap;

use placement_raft_store::Vote;

/// What a node says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// The node.
    pub node: u64,
    /// Which of its starts this is, from 1.
    pub start: u64,
    /// The vote that it has made durable.
    pub vote: Vote,
    /// Whether it leads.
    pub leads: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Leadership {
    /// The start that each leader (term, node) led in.
    leaders: BTreeMap<(u64, u64), u64>,
    /// Per node: its start and the vote it had then.
    votes: BTreeMap<u64, (u64, Vote)>,
}

impl Leadership {
    /// Looks at what one node says of itself.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn observe(&mut self, role: Role) -> Result<(), String> {
        let Role {
            node, start, vote, ..
        } = role;
        let before = self.votes.insert(node, (start, vote));
        if let Some((then, before)) = before
            && then == start
            && before > vote
        {
            return Err(format!(
                "votes rise: node {node} went back from {before} to {vote}"
            ));
        }
        if role.leads {
            self.leads(role)?;
        }
        Ok(())
    }

    fn leads(&mut self, role: Role) -> Result<(), String> {
        let Role {
            node, start, vote, ..
        } = role;
        if vote.leader_id.node_id != node {
            return Err(format!(
                "a leader holds its own vote: node {node} leads, but has voted {vote}"
            ));
        }
        let term = vote.leader_id.term;
        let led = *self.leaders.entry((term, node)).or_insert(start);
        if led != start {
            return Err(format!(
                "one start per leader: node {node} leads in term {term} in its start {start}, and \
                 did so in its start {led}"
            ));
        }
        Ok(())
    }

    /// How many leaders there were.
    pub fn elections(&self) -> usize {
        self.leaders.len()
    }
}
