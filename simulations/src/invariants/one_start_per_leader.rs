//! A leader, which is a term and a node, leads in one start of its node only (election safety, Raft
//! paper, figure 3). A node that led and was started again has to be elected in a higher term: if
//! its vote was lost, it might write other entries under the same names.

use std::collections::BTreeMap;

use super::Role;

/// Its name in complaints.
pub const NAME: &str = "one start per leader";

/// See the module.
#[derive(Debug, Default)]
pub struct OneStartPerLeader {
    /// The start that each leader (term, node) led in.
    leaders: BTreeMap<(u64, u64), u64>,
}

impl OneStartPerLeader {
    /// Looks at what one node says of itself.
    ///
    /// # Errors
    /// What is wrong.
    pub fn observe(&mut self, role: &Role) -> Result<(), String> {
        let Role {
            node, start, vote, ..
        } = role;
        if !role.leads || vote.leader_id.node_id != *node {
            return Ok(());
        }
        let term = vote.leader_id.term;
        let led = *self.leaders.entry((term, *node)).or_insert(*start);
        match led == *start {
            true => Ok(()),
            false => Err(format!(
                "{NAME}: node {node} leads in term {term} in its start {start}, and did so in its \
                 start {led}"
            )),
        }
    }

    /// How many leaders there were.
    pub fn leaders(&self) -> usize {
        self.leaders.len()
    }
}
