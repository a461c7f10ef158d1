//! What all providers have together, class by class.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use crate::state::State;
use crate::state::change::{ResourceClassId, TraitId};
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

impl ClassCapacity {
    /// What rows are sorted by.
    fn names(&self) -> impl Ord {
        (&self.class, &self.aggregate, &self.trait_name)
    }
}

/// Sums over inventories, in units of the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
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
        }
    }

    fn add(&mut self, other: &Self) {
        self.providers += other.providers;
        self.total += other.total;
        self.reserved += other.reserved;
        self.capacity += other.capacity;
        self.used = self.used.saturating_add(other.used);
        self.free = self.free.saturating_add(other.free);
        self.largest_free = self.largest_free.max(other.largest_free);
    }
}

/// What the stocks of a provider count to. Most providers share theirs with many others, so that sums are made for
/// each of these first, and then for each aggregate or trait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Facets<'a> {
    All,
    /// Those of the root, and those of the provider if it has others.
    Aggregates(
        &'a BTreeSet<AggregateUuid>,
        Option<&'a BTreeSet<AggregateUuid>>,
    ),
    Traits(&'a BTreeSet<TraitId>),
}

type Facet<'a> = (Option<&'a AggregateUuid>, Option<TraitId>);

impl<'a> Facets<'a> {
    fn of(by: CapacityBy, root: &'a Node, node: &'a Node) -> Self {
        match by {
            CapacityBy::Class => Self::All,
            CapacityBy::Aggregate => {
                let own =
                    (!node.aggregates.is_subset(&root.aggregates)).then_some(&*node.aggregates);
                Self::Aggregates(&root.aggregates, own)
            }
            CapacityBy::Trait => Self::Traits(&node.traits),
        }
    }

    fn each(self) -> Vec<Facet<'a>> {
        match self {
            Self::All => vec![(None, None)],
            Self::Aggregates(of_root, own) => {
                let all: BTreeSet<_> = of_root.iter().chain(own.into_iter().flatten()).collect();
                all.into_iter().map(|one| (Some(one), None)).collect()
            }
            Self::Traits(all) => all.iter().map(|id| (None, Some(*id))).collect(),
        }
    }
}

impl State {
    /// What all providers have of one class or of each; `None` if the answer would have more than `rows_max` rows.
    pub fn capacity(
        &self,
        class: Option<&ResourceClassName>,
        by: CapacityBy,
        rows_max: usize,
    ) -> Option<CapacityReport> {
        let mut rows: BTreeMap<(ResourceClassId, Facet<'_>), CapacitySums> = BTreeMap::new();
        for (facets, classes) in self.capacity_by_facets(class, by) {
            for facet in facets.each() {
                for (class, sums) in &classes {
                    rows.entry((*class, facet)).or_default().add(sums);
                }
                if rows.len() > rows_max {
                    return None;
                }
            }
        }
        let row = |((class, (aggregate, id)), sums): ((_, Facet<'_>), _)| ClassCapacity {
            class: self.resource_class_name(class).clone(),
            aggregate: aggregate.cloned(),
            trait_name: id.map(|id| self.trait_name(id).clone()),
            sums,
        };
        let mut capacity: Vec<_> = rows.into_iter().map(row).collect();
        capacity.sort_unstable_by(|one, other| one.names().cmp(&other.names()));
        Some(CapacityReport { by, capacity })
    }

    fn capacity_by_facets<'a>(
        &'a self,
        class: Option<&ResourceClassName>,
        by: CapacityBy,
    ) -> BTreeMap<Facets<'a>, BTreeMap<ResourceClassId, CapacitySums>> {
        let only = class.map(|name| self.resource_class_id(name));
        let mut sums: BTreeMap<_, BTreeMap<_, CapacitySums>> = BTreeMap::new();
        for (_, tree) in self.trees() {
            let root = tree.root();
            let same = |one: &Arc<Node>, other: &Arc<Node>| {
                Facets::of(by, root, one) == Facets::of(by, root, other)
            };
            for nodes in tree.nodes.chunk_by(same) {
                let classes = sums.entry(Facets::of(by, root, &nodes[0])).or_default();
                let stocks = nodes.iter().flat_map(|node| &node.inventories);
                for stock in stocks.filter(|stock| only.is_none_or(|id| id == Some(stock.class))) {
                    let of_class = classes.entry(stock.class).or_default();
                    of_class.add(&CapacitySums::of(stock));
                }
            }
        }
        sums
    }
}
