//! Holds: which writes end them, their change and the end of leases.

use std::collections::BTreeSet;

use super::{Decide, Decision, ensure};
use crate::command::{ExpireHolds, RenewHold};
use crate::mutant;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, Changes, ConsumerRow, RowKey};
use crate::types::{ConsumerUuid, Hold, HoldEnd, Timestamp};

/// Maximum number of holds that are kept for a consumer.
const FOR_CONSUMER_MAX: usize = 100;

/// The effect of a write of allocations on holds.
#[derive(Default)]
pub(super) struct HoldUpdate {
    /// The consumers whose holds the write ends.
    pub(super) ended: BTreeSet<ConsumerUuid>,
    /// The effect on the holds of the written consumers.
    pub(super) written: WrittenHold,
}

/// The hold of a consumer after a write of its allocations.
#[derive(Default)]
pub(super) enum WrittenHold {
    /// The consumer keeps its hold, if it has one.
    #[default]
    Keep,
    /// The consumer has this hold, or none.
    Set(Option<Box<Hold>>),
}

impl HoldUpdate {
    /// A write of the consumers `written` that gives some of them, `given`, allocations: it ends
    /// the holds that are kept for these, except for holds of consumers that it writes itself.
    pub(super) fn giving<'a>(
        state: &State,
        given: impl Iterator<Item = &'a ConsumerUuid>,
        written: impl Iterator<Item = &'a ConsumerUuid>,
        hold: Option<Box<Hold>>,
    ) -> Self {
        let holds = state.consumers.holds();
        let mut ended = BTreeSet::new();
        if !holds.is_empty() {
            let kept = given.flat_map(|consumer| holds.for_consumer(consumer));
            ended.extend(kept.cloned());
            if mutant!("hold-stays") {
                ended.clear();
            }
            if mutant!("hold-of-another-ends") && !ended.is_empty() {
                ended.extend(holds.holders_after(ConsumerUuid::first()).next().cloned());
            }
            for consumer in written {
                ended.remove(consumer);
            }
        }
        Self {
            ended,
            written: WrittenHold::Set(hold),
        }
    }

    /// Deletes the consumers of the holds that the write ends.
    pub(super) fn end(&self, changes: &mut Changes) {
        let deleted = self.ended.iter().map(delete);
        changes.extend(deleted);
    }
}

fn delete(holder: &ConsumerUuid) -> Change {
    Change::Delete(RowKey::Consumer(holder.clone()))
}

/// Checks that a hold with a due time only gets another due time: others may rely on it.
pub(super) fn check_end(state: &State, holder: &ConsumerUuid, end: HoldEnd) -> Result<(), Refusal> {
    let row = state.consumers.row(holder);
    let is_due = |hold: &Hold| matches!(hold.end, HoldEnd::Due(_));
    let was_due = row.is_some_and(|row| row.hold.as_deref().is_some_and(is_due));
    let may = !was_due || matches!(end, HoldEnd::Due(_)) || mutant!("due-becomes-a-lease");
    ensure(may, || Refusal::HoldIsDue(holder.clone()))
}

/// Checks that `holders` further holds can be kept for the same consumers: a write of one of these
/// ends all its holds.
pub(super) fn check_count(state: &State, hold: &Hold, holders: usize) -> Result<(), Refusal> {
    for consumer in &hold.kept_for {
        let holds = state.consumers.holds().for_consumer(consumer);
        let left = FOR_CONSUMER_MAX.saturating_sub(holds.take(FOR_CONSUMER_MAX).count());
        ensure(holders <= left, || Refusal::TooManyHolds(consumer.clone()))?;
    }
    Ok(())
}

/// `PUT /placementd/v1/holds/{consumer}`: changes the end of a hold.
impl Decide for RenewHold {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let consumer = &self.consumer;
        let held = state.consumers.row(consumer);
        let held = held.and_then(|row| Some((row, row.hold.as_deref()?)));
        let (row, hold) = held.ok_or_else(|| Refusal::HoldNotFound(consumer.clone()))?;
        let end = self.term.from_now(at);
        check_end(state, consumer, end)?;
        if end == hold.end {
            return Ok((Reply::Done, Changes::new()));
        }
        let row = ConsumerRow {
            hold: Some(Box::new(Hold {
                end,
                ..hold.clone()
            })),
            ..row.as_ref().clone()
        };
        let change = Change::PutConsumer(consumer.clone(), row);
        Ok((Reply::Done, vec![change]))
    }
}

/// Deletes the consumers whose leases are over at the timestamp of the command. A lease that was
/// renewed earlier in the log ends later, whatever the node that proposed the command knew.
impl Decide for ExpireHolds {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let early = if mutant!("lease-ends-early") {
            Timestamp(at.0.saturating_add(10_000_000))
        } else {
            at
        };
        let over = state.consumers.holds().leases_until(early);
        let changes = over.take(Self::MOST).map(delete).collect();
        Ok((Reply::Done, changes))
    }
}
