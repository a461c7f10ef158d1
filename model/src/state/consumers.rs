//! Consumers with all that they hold, and who holds something of which provider.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::change::{ConsumerRow, ProviderId};
use super::usage_sums::UsageSums;
use crate::types::ConsumerUuid;

/// The consumers. Holders and sums follow from the rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Consumers {
    rows: OrdMap<ConsumerUuid, Arc<ConsumerRow>>,
    holders: OrdMap<ProviderId, OrdSet<ConsumerUuid>>,
    sums: UsageSums,
}

impl Consumers {
    pub(crate) fn row(&self, consumer: &ConsumerUuid) -> Option<&Arc<ConsumerRow>> {
        self.rows.get(consumer)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (&ConsumerUuid, &ConsumerRow)> {
        self.rows.iter().map(|(consumer, row)| (consumer, &**row))
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn sums(&self) -> &UsageSums {
        &self.sums
    }

    /// Who holds something of a provider, sorted.
    pub(crate) fn holders(&self, provider: ProviderId) -> impl Iterator<Item = &ConsumerUuid> {
        self.holders.get(&provider).into_iter().flatten()
    }

    pub(crate) fn put(
        &mut self,
        consumer: ConsumerUuid,
        row: Arc<ConsumerRow>,
    ) -> Option<Arc<ConsumerRow>> {
        let old = self.rows.insert(consumer.clone(), Arc::clone(&row));
        if let Some(old) = &old {
            self.sums.remove(old);
            let gone = old
                .allocations
                .keys()
                .filter(|id| !row.allocations.contains_key(id));
            gone.for_each(|id| self.remove_holder(*id, &consumer));
        }
        self.sums.add(&row);
        for id in row.allocations.keys() {
            if old
                .as_ref()
                .is_none_or(|old| !old.allocations.contains_key(id))
            {
                self.holders
                    .entry(*id)
                    .or_default()
                    .insert(consumer.clone());
            }
        }
        old
    }

    pub(crate) fn delete(&mut self, consumer: &ConsumerUuid) -> Arc<ConsumerRow> {
        let old = self.rows.remove(consumer);
        let old = old.expect("a consumer that goes is there");
        self.sums.remove(&old);
        for id in old.allocations.keys() {
            self.remove_holder(*id, consumer);
        }
        old
    }

    fn remove_holder(&mut self, provider: ProviderId, consumer: &ConsumerUuid) {
        let holders = self.holders.get_mut(&provider);
        let holders = holders.expect("who holds something is noted");
        holders.remove(consumer);
        if holders.is_empty() {
            self.holders.remove(&provider);
        }
    }
}
