//! `PUT /allocations/{consumer}` and `POST /allocations`

use super::{Decide, Decision, claims, consumers};
use crate::command::ReplaceAllocations;
use crate::outcome::Reply;
use crate::state::State;
use crate::state::change::Changes;
use crate::types::Timestamp;

/// Replaces what consumers hold, all or nothing.
impl Decide for ReplaceAllocations {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let request = consumers::inspect(state, at, &self.consumers)?;
        let mut changes = Changes::new();
        claims::claim(state, at, &request, &mut changes)?;
        Ok((Reply::Done, changes))
    }
}
