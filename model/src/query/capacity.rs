//! What all providers have together, class by class.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::state::State;
use crate::state::change::TraitId;
use crate::state::indexes::offer;
use crate::state::tree::{Node, Stock};
use crate::types::{AggregateUuid, Capacity, ResourceClassName, TraitName};

/// What sums are made by, besides the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CapacityBy {
    /// Nothing.
    Class,
    /// The aggregates of a provider or of its root, as `member_of` asks for them.
    Aggregate,
    /// The provider's own traits.
    Trait,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CapacityReport {
    /// As asked.
    pub by: CapacityBy,
    /// By name of class, then of aggregate or trait; only what some provider has an inventory of.
    pub capacity: Vec<ClassCapacity>,
}

/// One class, of the members of one aggregate or of the providers with one trait if so asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassCapacity {
    /// The class.
    pub class: ResourceClassName,
    /// With [`CapacityBy::Aggregate`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<AggregateUuid>,
    /// With [`CapacityBy::Trait`].
    #[serde(rename = "trait", skip_serializing_if = "Option::is_none")]
    pub trait_name: Option<TraitName>,
    /// What these providers have.
    #[serde(flatten)]
    pub sums: CapacitySums,
}

/// Sums over inventories, in units of the class.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CapacitySums {
    /// How many providers have an inventory.
    pub providers: u64,
    /// Units that exist.
    pub total: u64,
    /// Units that are kept back.
    pub reserved: u64,
    /// Overcommit included.
    pub capacity: Capacity,
    /// Allocated units.
    pub used: u64,
    /// What is left of the capacities; a provider that is over its own takes nothing from others.
    pub free: u64,
    /// The most that one of the providers can give to one request.
    pub largest_free: u64,
    /// How many of the providers have how much left: first none, then 1, then 2 or 3, then 4 to 7,
    /// and so on. Ends with the last range in which there is one; empty with other than
    /// [`CapacityBy::Class`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub free_ranges: Vec<u64>,
}

impl CapacitySums {
    fn of(stock: &Stock) -> Self {
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

    /// Counts what other providers have in.
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

/// An aggregate or a trait, if sums are made by one.
type Facet<'a> = (Option<&'a AggregateUuid>, Option<TraitId>);

/// All that the stocks of a provider count to.
fn facets<'a>(by: CapacityBy, root: &'a Node, node: &'a Node) -> Vec<Facet<'a>> {
    match by {
        CapacityBy::Class => vec![(None, None)],
        CapacityBy::Aggregate => {
            let all = root.aggregates.union(&node.aggregates);
            all.map(|one| (Some(one), None)).collect()
        }
        CapacityBy::Trait => node.traits.iter().map(|id| (None, Some(*id))).collect(),
    }
}

impl State {
    /// What all providers have of one class or of each; `None` if the answer would have more than
    /// `rows_max` rows.
    pub fn capacity(
        &self,
        class: Option<&ResourceClassName>,
        by: CapacityBy,
        rows_max: usize,
    ) -> Option<CapacityReport> {
        let only = class.map(|name| self.resource_class_id(name));
        // Most providers share their facets with many others, so that sums are made for each of
        // these first.
        let mut shared: BTreeMap<_, BTreeMap<_, CapacitySums>> = BTreeMap::new();
        for (_, tree) in self.trees() {
            for node in &tree.nodes {
                let sums = shared.entry(facets(by, tree.root(), node)).or_default();
                let stocks = node.inventories.iter();
                for stock in stocks.filter(|stock| only.is_none_or(|id| id == Some(stock.class))) {
                    let of_class = sums.entry(stock.class).or_default();
                    let own = CapacitySums::of(stock);
                    of_class.add(&own);
                    if by == CapacityBy::Class {
                        of_class.count_free(own.free);
                    }
                }
            }
        }
        let mut rows: BTreeMap<_, CapacitySums> = BTreeMap::new();
        for (facets, classes) in shared {
            for (aggregate, id) in facets {
                let trait_name = id.map(|id| self.trait_name(id));
                for (class, sums) in &classes {
                    let class = self.resource_class_name(*class);
                    let row = rows.entry((class, aggregate, trait_name)).or_default();
                    row.add(sums);
                }
                if rows.len() > rows_max {
                    return None;
                }
            }
        }
        let capacity = rows.into_iter();
        let capacity = capacity.map(|((class, aggregate, trait_name), sums)| ClassCapacity {
            class: class.clone(),
            aggregate: aggregate.cloned(),
            trait_name: trait_name.cloned(),
            sums,
        });
        Some(CapacityReport {
            by,
            capacity: capacity.collect(),
        })
    }
}
