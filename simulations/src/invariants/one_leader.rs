//! At most one leader per term, and no node's term falls while it runs.

use std::collections::BTreeMap;

/// What a node says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// The node.
    pub node: u64,
    /// Its term.
    pub term: u64,
    /// Whether it leads in that term.
    pub leads: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct OneLeader {
    leaders: BTreeMap<u64, u64>,
    terms: BTreeMap<u64, u64>,
}

impl OneLeader {
    /// Looks at what one node says of itself.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn observe(&mut self, role: Role) -> Result<(), String> {
        let before = self.terms.insert(role.node, role.term).unwrap_or_default();
        if before > role.term {
            return Err(format!(
                "node {} went back from term {before}: {role:?}",
                role.node
            ));
        }
        if role.leads {
            let leader = *self.leaders.entry(role.term).or_insert(role.node);
            if leader != role.node {
                return Err(format!(
                    "nodes {leader} and {} lead in term {}",
                    role.node, role.term
                ));
            }
        }
        Ok(())
    }

    /// Forgets a node's term: after a power cut it may know less than it said.
    pub fn restarted(&mut self, node: u64) {
        self.terms.remove(&node);
    }

    /// How many terms had a leader.
    pub fn elections(&self) -> usize {
        self.leaders.len()
    }
}
