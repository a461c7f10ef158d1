//! Consumers with their allocations, and the consumers of each provider.

use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::change::{ConsumerRow, ProviderId};
use super::dense::dense;
use super::holds::Holds;
use super::usage_sums::UsageSums;
use crate::types::ConsumerUuid;

/// The table of consumers. Holders, holds and sums are derived from the rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Consumers {
    rows: OrdMap<ConsumerUuid, Arc<ConsumerRow>>,
    /// Consumers by provider, in one set for all providers: most providers have few consumers, and
    /// separate sets would be mostly empty.
    holders: OrdSet<(ProviderId, ConsumerUuid)>,
    sums: UsageSums,
    holds: Holds,
}

impl Consumers {
    /// Builds the table from rows in the order of their keys, and the data derived from them.
    pub(super) fn from_rows(
        rows: Vec<(ConsumerUuid, Arc<ConsumerRow>)>,
        mut holders: Vec<(ProviderId, ConsumerUuid)>,
        sums: UsageSums,
    ) -> Self {
        holders.sort_unstable();
        let mut holds = Holds::default();
        for (consumer, row) in &rows {
            row.hold.iter().for_each(|hold| holds.add(consumer, hold));
        }
        Self {
            rows: dense(rows).collect(),
            holders: dense(holders).collect(),
            sums,
            holds,
        }
    }

    pub(crate) fn row(&self, consumer: &ConsumerUuid) -> Option<&Arc<ConsumerRow>> {
        self.rows.get(consumer)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (&ConsumerUuid, &ConsumerRow)> {
        self.rows.iter().map(|(consumer, row)| (consumer, &**row))
    }

    /// The consumers whose UUID is greater than `after`. If a provider is given, only those with
    /// allocations on it.
    pub(crate) fn rows_after(
        &self,
        provider: Option<ProviderId>,
        after: Option<&ConsumerUuid>,
    ) -> Box<dyn Iterator<Item = (&ConsumerUuid, &ConsumerRow)> + '_> {
        let after = after.cloned().unwrap_or_else(ConsumerUuid::first);
        let Some(provider) = provider else {
            let rows = self.rows.range((Excluded(after), Unbounded));
            return Box::new(rows.map(|(consumer, row)| (consumer, &**row)));
        };
        let row = |consumer| &**self.row(consumer).expect("a holder has a consumer row");
        let holders = self.holders_after(provider, after);
        Box::new(holders.map(move |consumer| (consumer, row(consumer))))
    }

    /// The consumers that have holds and whose UUID is greater than `after`.
    pub(crate) fn holds_after(
        &self,
        after: Option<&ConsumerUuid>,
    ) -> Box<dyn Iterator<Item = (&ConsumerUuid, &ConsumerRow)> + '_> {
        let after = after.cloned().unwrap_or_else(ConsumerUuid::first);
        let row = |consumer| &**self.row(consumer).expect("a hold has a consumer row");
        let holders = self.holds.holders_after(after);
        Box::new(holders.map(move |consumer| (consumer, row(consumer))))
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn sums(&self) -> &UsageSums {
        &self.sums
    }

    pub(crate) fn holds(&self) -> &Holds {
        &self.holds
    }

    /// Whether any consumer has allocations.
    pub(crate) fn hold_allocations(&self) -> bool {
        !self.holders.is_empty()
    }

    /// The consumers with allocations on a provider, sorted.
    pub(crate) fn holders(&self, provider: ProviderId) -> impl Iterator<Item = &ConsumerUuid> {
        self.holders_after(provider, ConsumerUuid::first())
    }

    fn holders_after(
        &self,
        provider: ProviderId,
        after: ConsumerUuid,
    ) -> impl Iterator<Item = &ConsumerUuid> {
        self.holders
            .range((Excluded((provider, after)), Unbounded))
            .take_while(move |(of, _)| *of == provider)
            .map(|(_, consumer)| consumer)
    }

    pub(crate) fn put(
        &mut self,
        consumer: &ConsumerUuid,
        mut row: ConsumerRow,
    ) -> Option<Arc<ConsumerRow>> {
        self.sums.add(&mut row);
        let row = Arc::new(row);
        let old = self.rows.insert(consumer.clone(), Arc::clone(&row));
        if let Some(old) = &old {
            self.sums.remove(old);
            if let Some(hold) = &old.hold {
                self.holds.remove(consumer, hold);
            }
            for (provider, _) in old.allocations.by_provider() {
                if row.allocations.on_provider(provider).is_empty() {
                    self.remove_holder(provider, consumer);
                }
            }
        }
        if let Some(hold) = &row.hold {
            self.holds.add(consumer, hold);
        }
        for (provider, _) in row.allocations.by_provider() {
            let held = |old: &Arc<ConsumerRow>| !old.allocations.on_provider(provider).is_empty();
            if !old.as_ref().is_some_and(held) {
                self.holders.insert((provider, consumer.clone()));
            }
        }
        old
    }

    pub(crate) fn delete(&mut self, consumer: &ConsumerUuid) -> Arc<ConsumerRow> {
        let old = self
            .rows
            .remove(consumer)
            .expect("a deleted consumer exists");
        self.sums.remove(&old);
        if let Some(hold) = &old.hold {
            self.holds.remove(consumer, hold);
        }
        for (provider, _) in old.allocations.by_provider() {
            self.remove_holder(provider, consumer);
        }
        old
    }

    fn remove_holder(&mut self, provider: ProviderId, consumer: &ConsumerUuid) {
        let noted = self.holders.remove(&(provider, consumer.clone()));
        noted.expect("every holder is in the set");
    }
}
