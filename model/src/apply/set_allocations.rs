//! `PUT /allocations/{consumer}` and `POST /allocations`

use super::{Decision, claims, consumers};
use crate::command::ConsumerAllocations;
use crate::outcome::Reply;
use crate::state::State;
use crate::state::change::Changes;
use crate::types::Timestamp;

/// Replaces what consumers hold, all or nothing.
pub(super) fn set_allocations(
    state: &State,
    at: Timestamp,
    consumers: &[ConsumerAllocations],
) -> Decision {
    let request = consumers::inspect(state, at, consumers)?;
    let mut changes = Changes::new();
    claims::claim(state, at, &request, &mut changes)?;
    Ok((Reply::Done, changes))
}
