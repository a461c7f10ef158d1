//! The holds of all consumers, by their ends and by the consumers that they are kept for.

use std::ops::Bound::{Excluded, Unbounded};

use imbl::OrdSet;

use crate::types::{ConsumerUuid, Hold, HoldEnd, Timestamp};

/// Indexes of the holds in the rows of consumers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Holds {
    by_end: OrdSet<(HoldEnd, ConsumerUuid)>,
    /// The consumers that have holds.
    holders: OrdSet<ConsumerUuid>,
    /// A consumer that a hold is kept for, and the consumer of the hold.
    kept_for: OrdSet<(ConsumerUuid, ConsumerUuid)>,
}

impl Holds {
    pub(super) fn add(&mut self, holder: &ConsumerUuid, hold: &Hold) {
        self.by_end.insert((hold.end, holder.clone()));
        self.holders.insert(holder.clone());
        for kept_for in &hold.kept_for {
            self.kept_for.insert((kept_for.clone(), holder.clone()));
        }
    }

    pub(super) fn remove(&mut self, holder: &ConsumerUuid, hold: &Hold) {
        const INDEXED: &str = "the indexes contain every hold";
        let old = self.by_end.remove(&(hold.end, holder.clone()));
        old.expect(INDEXED);
        self.holders.remove(holder).expect(INDEXED);
        for kept_for in &hold.kept_for {
            let pair = (kept_for.clone(), holder.clone());
            self.kept_for.remove(&pair).expect(INDEXED);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_end.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_end.len()
    }

    /// The consumers that have holds and whose UUID is greater than `after`, sorted.
    pub(crate) fn holders_after(&self, after: ConsumerUuid) -> impl Iterator<Item = &ConsumerUuid> {
        self.holders.range((Excluded(after), Unbounded))
    }

    /// The consumers of the holds that are kept for a consumer.
    pub(crate) fn for_consumer<'a>(
        &'a self,
        consumer: &ConsumerUuid,
    ) -> impl Iterator<Item = &'a ConsumerUuid> {
        let kept_for = consumer.clone();
        self.kept_for
            .range((
                Excluded((consumer.clone(), ConsumerUuid::first())),
                Unbounded,
            ))
            .take_while(move |(consumer, _)| *consumer == kept_for)
            .map(|(_, holder)| holder)
    }

    /// The consumers of the leases that end at `at` or before, the earliest first.
    pub(crate) fn leases_until(&self, at: Timestamp) -> impl Iterator<Item = &ConsumerUuid> {
        let leases = self.by_end.iter();
        leases
            .take_while(move |(end, _)| *end <= HoldEnd::Lease(at))
            .map(|(_, holder)| holder)
    }

    /// The end of the lease that ends first.
    pub(crate) fn next_lease_end(&self) -> Option<Timestamp> {
        match self.by_end.get_min() {
            Some((HoldEnd::Lease(end), _)) => Some(*end),
            _ => None,
        }
    }

    /// Number of holds that are due at `at` or earlier.
    pub(crate) fn overdue(&self, at: Timestamp) -> usize {
        let first = (HoldEnd::Due(Timestamp(i64::MIN)), ConsumerUuid::first());
        let due = self.by_end.range((Excluded(first), Unbounded));
        due.take_while(|(end, _)| *end <= HoldEnd::Due(at)).count()
    }
}
