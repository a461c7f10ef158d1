//! A leader (term and node) leads in one start of its node only (election safety, Raft paper,
//! figure 3). A restarted leader must be elected again in a higher term: if it lost its vote, it
//! could write different entries under the same ids.

use std::collections::BTreeMap;

use super::Role;

/// Name of the invariant in violations.
pub const NAME: &str = "one start per leader";

/// Remembers in which start each leader led.
#[derive(Debug, Default)]
pub struct OneStartPerLeader {
    /// The start of the node in which each leader (term, node) led.
    leaders: BTreeMap<(u64, u64), u64>,
}

impl OneStartPerLeader {
    /// Checks the role that one node reports.
    ///
    /// # Errors
    /// Description of the violation.
    pub fn observe(&mut self, role: &Role) -> Result<(), String> {
        let Role {
            node, start, vote, ..
        } = role;
        if !role.leads || vote.leader_id.node_id != *node {
            return Ok(());
        }
        let term = vote.leader_id.term;
        let led = *self.leaders.entry((term, *node)).or_insert(*start);
        if led == *start {
            Ok(())
        } else {
            Err(format!(
                "{NAME}: node {node} leads in term {term} in its start {start}, but already did in its \
                 start {led}"
            ))
        }
    }

    /// Number of leaders so far.
    pub fn leaders(&self) -> usize {
        self.leaders.len()
    }
}
