//! Capacity sums over all providers.

use std::collections::BTreeMap;

use placement_model::query::capacity::{CapacityBy, CapacityReport, CapacitySums, ClassCapacity};
use placement_model::types::{AggregateUuid, ProviderUuid, ResourceClassName, TraitName};

use super::Naive;
use super::inventories::exact_capacity;

/// Aggregate, trait or provider by which sums are grouped.
type Facet = (
    Option<AggregateUuid>,
    Option<TraitName>,
    Option<ProviderUuid>,
);

impl Naive {
    /// `GET /placementd/v1/capacity`, without a row limit.
    pub fn capacity(&self, class: Option<&ResourceClassName>, by: CapacityBy) -> CapacityReport {
        let mut rows: BTreeMap<_, CapacitySums> = BTreeMap::new();
        for (uuid, provider) in &self.providers {
            let root = &self.providers[&self.root(uuid)];
            let facets: Vec<Facet> = match by {
                CapacityBy::Class => vec![(None, None, None)],
                CapacityBy::Aggregate => (provider.aggregates.union(&root.aggregates))
                    .map(|aggregate| (Some(aggregate.clone()), None, None))
                    .collect(),
                CapacityBy::Trait => (provider.traits.iter())
                    .map(|name| (None, Some(name.clone()), None))
                    .collect(),
                CapacityBy::Provider => vec![(None, None, Some(*uuid))],
                CapacityBy::Tree => vec![(None, None, Some(self.root(uuid)))],
            };
            for (name, row) in &provider.inventories {
                if class.is_some_and(|class| class != name) {
                    continue;
                }
                for facet in &facets {
                    let used = self.used(uuid, name);
                    let left = exact_capacity(&row.inventory).trunc() - used as f64;
                    let free = left.max(0.0) as u64;
                    let sums = rows.entry((name.clone(), facet.clone())).or_default();
                    sums.providers += 1;
                    sums.total += u64::from(row.inventory.total);
                    sums.reserved += u64::from(row.inventory.reserved);
                    sums.capacity += row.inventory.capacity();
                    sums.used += used;
                    sums.free += free;
                    let largest = free.min(u64::from(row.inventory.max_unit));
                    sums.largest_free = sums.largest_free.max(largest);
                    if by == CapacityBy::Class {
                        let range = if free == 0 {
                            0
                        } else {
                            free.ilog2() as usize + 1
                        };
                        let ranges = sums.free_ranges.len().max(range + 1);
                        sums.free_ranges.resize(ranges, 0);
                        sums.free_ranges[range] += 1;
                    }
                }
            }
        }
        let capacity =
            rows.into_iter()
                .map(
                    |((class, (aggregate, trait_name, provider)), sums)| ClassCapacity {
                        class,
                        aggregate,
                        trait_name,
                        provider: provider.map(|uuid| self.named_provider(&uuid)),
                        sums,
                    },
                );
        CapacityReport {
            by,
            capacity: capacity.collect(),
        }
    }
}
