//! Commands that change allocations.

use super::holds::HoldUpdate;
use super::{Decide, Decision, claims, consumers, limits};
use crate::command::{DeleteAllocations, ReplaceAllocations};
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, Changes, RowKey};
use crate::types::Timestamp;

/// `PUT /allocations/{consumer}` and `POST /allocations`: replaces the allocations of consumers,
/// all or nothing. Ends the holds that are kept for them; their own holds become ordinary
/// allocations.
impl Decide for ReplaceAllocations {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let request = consumers::inspect(state, at, &self.consumers)?;
        let consumers = || request.consumers.iter();
        let given = consumers().filter(|one| !one.allocations.is_empty());
        let given = given.map(|one| &one.consumer);
        let written = consumers().map(|one| &one.consumer);
        let holds = HoldUpdate::giving(state, given, written, None);
        let mut changes = Changes::new();
        claims::claim(state, at, &request, &holds, &mut changes)?;
        let excesses = limits::check(state, &changes)?;
        Ok((limits::report(Reply::Done, excesses), changes))
    }
}

impl ReplaceAllocations {
    /// Whether every consumer has the content that this command writes, and the generation after
    /// the one that the command expects. False if the command expects no generation.
    pub fn is_done_in(&self, state: &State) -> bool {
        consumers::keep_last_per_key(&self.consumers, |consumer| &consumer.consumer)
            .into_iter()
            .all(|consumer| consumers::is_as_requested(state, consumer))
    }
}

/// `DELETE /allocations/{consumer}`: deletes all allocations of a consumer, and the consumer.
/// Generations of providers do not change.
impl Decide for DeleteAllocations {
    fn decide(&self, state: &State, _at: Timestamp) -> Decision {
        let consumer = self.consumer.clone();
        match state.consumers.row(&consumer) {
            Some(row) if !row.allocations.is_empty() => Ok((
                Reply::Done,
                vec![Change::Delete(RowKey::Consumer(consumer))],
            )),
            _ => Err(Refusal::ConsumerHasNoAllocations(consumer).into()),
        }
    }
}
