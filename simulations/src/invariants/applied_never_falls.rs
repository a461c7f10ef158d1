//! On a running node, neither the index of the entries that it applies nor the applied index that
//! its readers see ever falls (last applied rises monotonically, Raft paper, figure 2). After a
//! crash the node may start again at its last snapshot.

use std::collections::BTreeMap;

use super::{Applied, Invariant, Role};

/// Name of the invariant in violations.
pub const NAME: &str = "applied never falls";

/// Checks the entries that a node applies.
#[derive(Debug, Default)]
pub struct AppliedNeverFalls {
    last: BTreeMap<u64, (u64, u64)>,
}

impl Invariant for AppliedNeverFalls {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        let now = (applied.start, applied.index);
        match self.last.insert(applied.node, now) {
            Some((start, before)) if start == applied.start && before >= applied.index => {
                Err(format!("{before} was already applied in this start"))
            }
            _ => Ok(()),
        }
    }
}

/// Checks the state that readers see.
#[derive(Debug, Default)]
pub struct SeenNeverFalls {
    last: BTreeMap<u64, (u64, u64)>,
}

impl SeenNeverFalls {
    /// Checks the role that a node reports.
    ///
    /// # Errors
    /// Description of the violation.
    pub fn observe(&mut self, role: &Role) -> Result<(), String> {
        let Some(index) = role.applied else {
            return Ok(());
        };
        match self.last.insert(role.node, (role.start, index)) {
            Some((start, before)) if start == role.start && before > index => Err(format!(
                "{NAME}: readers of node {} saw {before}, and then {index}",
                role.node
            )),
            _ => Ok(()),
        }
    }
}
