//! Removal of a node from the cluster

use super::{Decide, Decision};
use crate::command::RetireNode;
use crate::outcome::Reply;
use crate::state::State;
use crate::state::change::{Change, Changes, SessionRow};
use crate::types::Timestamp;

/// From here on, whatever the log holds under the node's number is a late duplicate. The outcomes
/// that were kept for it go, as nobody asks for them any more.
impl Decide for RetireNode {
    fn decide(&self, state: &State, _at: Timestamp) -> Decision {
        let mut changes: Changes = state
            .sessions()
            .sequences(self.node)
            .map(|sequence| Change::DeleteOutcome(self.node, sequence))
            .collect();
        if state.session(self.node) != Some(&SessionRow::RETIRED) {
            changes.push(Change::PutSession(self.node, SessionRow::RETIRED));
        }
        Ok((Reply::Done, changes))
    }
}
