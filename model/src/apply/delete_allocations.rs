//! `DELETE /allocations/{consumer}`

use super::Decision;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::Change;
use crate::types::ConsumerUuid;

/// Gives back all that a consumer holds, and forgets the consumer. No provider's generation rises.
pub(super) fn delete_allocations(state: &State, consumer: &ConsumerUuid) -> Decision {
    match state.consumer_row(consumer) {
        Some(row) if !row.allocations.is_empty() => {
            Ok((Reply::Done, vec![Change::DeleteConsumer(consumer.clone())]))
        }
        _ => Err(Refusal::ConsumerHasNoAllocations(consumer.clone()).into()),
    }
}
