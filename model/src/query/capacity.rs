//! Capacity of all providers, summed per class.

use std::collections::BTreeMap;

use super::NamedProvider;
use crate::state::State;
use crate::state::change::TraitId;
use crate::state::indexes::offer;
use crate::state::tree::{Node, Stock};
use crate::types::{
    AggregateUuid, Capacity, ProviderName, ProviderUuid, ResourceClassName, TraitName,
};

/// The second key by which sums are grouped, in addition to the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapacityBy {
    /// Sums per class only.
    Class,
    /// Sums per aggregate of the provider or of its root, as `member_of` matches them.
    Aggregate,
    /// Sums per trait of the provider itself.
    Trait,
    /// Each provider by itself.
    Provider,
    /// One sum per tree of providers.
    Tree,
}

/// Capacity sums of the whole state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityReport {
    /// The requested second key.
    pub by: CapacityBy,
    /// Sorted by the name of the class, then by aggregate, trait or UUID of the provider. Classes
    /// without an inventory are omitted.
    pub capacity: Vec<ClassCapacity>,
}

/// Sums of one class over all providers, over the members of one aggregate, the providers with one
/// trait, or the providers of one tree; or the inventory of one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassCapacity {
    /// The class of the summed inventories.
    pub class: ResourceClassName,
    /// The aggregate; set only with [`CapacityBy::Aggregate`].
    pub aggregate: Option<AggregateUuid>,
    /// The trait; set only with [`CapacityBy::Trait`].
    pub trait_name: Option<TraitName>,
    /// The provider, or the root of the tree; set only with [`CapacityBy::Provider`] and
    /// [`CapacityBy::Tree`].
    pub provider: Option<NamedProvider>,
    /// The sums over these providers.
    pub sums: CapacitySums,
}

/// Sums over inventories, in units of the class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapacitySums {
    /// Number of providers with an inventory of the class.
    pub providers: u64,
    /// Sum of the totals.
    pub total: u64,
    /// Sum of the reserved units.
    pub reserved: u64,
    /// Sum of the capacities, `(total - reserved) * allocation_ratio` each.
    pub capacity: Capacity,
    /// Sum of the allocated units.
    pub used: u64,
    /// Sum of the free units. A provider whose usage exceeds its capacity counts as 0, not as
    /// negative.
    pub free: u64,
    /// The largest amount that a single provider can give to one request.
    pub largest_free: u64,
    /// Number of providers per range of free units: 0, 1, 2 to 3, 4 to 7, and so on. Ends with the
    /// last range that is not empty. Set only with [`CapacityBy::Class`].
    pub free_ranges: Vec<u64>,
}

impl CapacitySums {
    fn from_stock(stock: &Stock) -> Self {
        let inventory = &stock.inventory;
        Self {
            providers: 1,
            total: u64::from(inventory.total),
            reserved: u64::from(inventory.reserved),
            capacity: inventory.capacity(),
            used: stock.used,
            free: inventory.free(stock.used),
            largest_free: offer(stock),
            free_ranges: Vec::new(),
        }
    }

    fn count_free(&mut self, free: u64) {
        let range = (u64::BITS - free.leading_zeros()) as usize;
        if self.free_ranges.len() <= range {
            self.free_ranges.resize(range + 1, 0);
        }
        self.free_ranges[range] += 1;
    }

    /// Adds the sums of other providers.
    pub fn add(&mut self, other: &Self) {
        self.providers += other.providers;
        self.total += other.total;
        self.reserved += other.reserved;
        self.capacity += other.capacity;
        self.used = self.used.saturating_add(other.used);
        self.free = self.free.saturating_add(other.free);
        self.largest_free = self.largest_free.max(other.largest_free);
        let longest = self.free_ranges.len().max(other.free_ranges.len());
        self.free_ranges.resize(longest, 0);
        for (own, more) in self.free_ranges.iter_mut().zip(&other.free_ranges) {
            *own += more;
        }
    }
}

/// The second key: an aggregate, a trait, a provider or nothing.
type Facet<'a> = (
    Option<&'a AggregateUuid>,
    Option<TraitId>,
    Option<(ProviderUuid, &'a ProviderName)>,
);

/// The second keys whose sums include the inventories of a provider.
fn facets<'a>(by: CapacityBy, root: &'a Node, node: &'a Node) -> Vec<Facet<'a>> {
    match by {
        CapacityBy::Class => vec![(None, None, None)],
        CapacityBy::Aggregate => {
            let all = root.aggregates.union(&node.aggregates);
            all.map(|one| (Some(one), None, None)).collect()
        }
        CapacityBy::Trait => {
            let all = node.traits.iter();
            all.map(|id| (None, Some(*id), None)).collect()
        }
        CapacityBy::Provider => vec![(None, None, Some((node.uuid, &node.name)))],
        CapacityBy::Tree => vec![(None, None, Some((root.uuid, &root.name)))],
    }
}

impl State {
    /// Returns the capacity of one class or of all classes, or `None` if the answer would exceed
    /// `rows_max` rows.
    pub fn capacity(
        &self,
        class: Option<&ResourceClassName>,
        by: CapacityBy,
        rows_max: usize,
    ) -> Option<CapacityReport> {
        let only = class.map(|name| self.resource_class_id(name));
        // Many providers have the same set of second keys, so sums are first built per set.
        let mut shared: BTreeMap<_, BTreeMap<_, CapacitySums>> = BTreeMap::new();
        let is_single = matches!(by, CapacityBy::Provider | CapacityBy::Tree);
        let mut sums_made = 0;
        for (_, tree) in self.trees() {
            for node in &tree.nodes {
                let sums = shared.entry(facets(by, tree.root(), node)).or_default();
                let classes_before = sums.len();
                let stocks = node.inventories.iter();
                for stock in stocks.filter(|stock| only.is_none_or(|id| id == Some(stock.class))) {
                    let of_class = sums.entry(stock.class).or_default();
                    let own = CapacitySums::from_stock(stock);
                    of_class.add(&own);
                    if by == CapacityBy::Class {
                        of_class.count_free(own.free);
                    }
                }
                sums_made += sums.len() - classes_before;
                // Each sum of a single second key becomes a row.
                if is_single && sums_made > rows_max {
                    return None;
                }
            }
        }
        let mut rows: BTreeMap<_, CapacitySums> = BTreeMap::new();
        for (facets, classes) in shared {
            for (aggregate, id, provider) in facets {
                let trait_name = id.map(|id| self.trait_name(id));
                for (class, sums) in &classes {
                    let class = self.resource_class_name(*class);
                    let key = (class, aggregate, trait_name, provider);
                    let row = rows.entry(key).or_default();
                    row.add(sums);
                }
                if rows.len() > rows_max {
                    return None;
                }
            }
        }
        let capacity = rows
            .into_iter()
            .map(
                |((class, aggregate, trait_name, provider), sums)| ClassCapacity {
                    class: class.clone(),
                    aggregate: aggregate.cloned(),
                    trait_name: trait_name.cloned(),
                    provider: provider.map(|(uuid, name)| NamedProvider {
                        uuid,
                        name: name.clone(),
                    }),
                    sums,
                },
            );
        Some(CapacityReport {
            by,
            capacity: capacity.collect(),
        })
    }
}
