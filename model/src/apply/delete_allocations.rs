//! `DELETE /allocations/{consumer}`

use super::{Decide, Decision};
use crate::command::DeleteAllocations;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::Change;
use crate::types::Timestamp;

/// Gives back all that a consumer holds, and forgets the consumer. No provider's generation rises.
impl Decide for DeleteAllocations {
    fn decide(&self, state: &State, _at: Timestamp) -> Decision {
        let consumer = self.consumer.clone();
        match state.consumer_row(&consumer) {
            Some(row) if !row.allocations.is_empty() => {
                Ok((Reply::Done, vec![Change::DeleteConsumer(consumer)]))
            }
            _ => Err(Refusal::ConsumerHasNoAllocations(consumer).into()),
        }
    }
}
