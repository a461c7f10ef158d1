//! The feature level of the cluster rises

use super::{Decide, Decision};
use crate::command::RaiseLevel;
use crate::outcome::Reply;
use crate::state::State;
use crate::state::change::{Change, Changes};
use crate::types::Timestamp;

/// From the next entry on, all nodes decide by the rules of the new level. A level that was reached
/// before changes nothing.
impl Decide for RaiseLevel {
    fn decide(&self, state: &State, _at: Timestamp) -> Decision {
        let mut changes = Changes::new();
        if self.to > state.level() {
            changes.push(Change::PutLevel(self.to));
        }
        Ok((Reply::Done, changes))
    }
}
