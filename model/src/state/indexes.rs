//! Which trees are worth opening: for each fact a bitmap of the trees that have it somewhere.
//!
//! A bitmap is a filter, never the proof: it says that *some* provider of the tree has the fact,
//! and the tree itself says exactly which. What concerns roots alone is exact.

use std::sync::Arc;

use imbl::OrdMap;

use super::change::{ResourceClassId, TraitId};
use super::tree::{Node, Stock, Tree, TreeNumber};
use super::tree_set::TreeSet;
use crate::types::AggregateUuid;

/// Bitmaps over tree numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Indexes {
    /// By class and exponent k: some provider can give at least 2^k at once.
    offers: OrdMap<(ResourceClassId, u32), TreeSet>,
    traits: OrdMap<TraitId, TreeSet>,
    root_traits: OrdMap<TraitId, TreeSet>,
    aggregates: OrdMap<AggregateUuid, TreeSet>,
    root_aggregates: OrdMap<AggregateUuid, TreeSet>,
    nested: TreeSet,
}

/// The most that one provider can give of this stock to one request: what is free, at most
/// `max_unit`.
pub fn offer(stock: &Stock) -> u64 {
    let free = i128::from(stock.inventory.capacity()) - i128::from(stock.used);
    u64::try_from(free)
        .unwrap_or(0)
        .min(u64::from(stock.inventory.max_unit))
}

/// The nodes in which two values of one tree may differ.
struct Changed<'a> {
    old: Vec<&'a Arc<Node>>,
    new: Vec<&'a Arc<Node>>,
    /// Both trees have the same nodes in the same places, and `old` and `new` are pairs.
    paired: bool,
}

impl<'a> Changed<'a> {
    fn between(old: &'a [Arc<Node>], new: &'a [Arc<Node>]) -> Self {
        if old.len() != new.len() {
            return Self {
                old: old.iter().collect(),
                new: new.iter().collect(),
                paired: false,
            };
        }
        let (old, new) = old
            .iter()
            .zip(new)
            .filter(|(old, new)| !Arc::ptr_eq(old, new))
            .unzip();
        Self {
            old,
            new,
            paired: true,
        }
    }

    /// Whether each node's value is what it was: the usual case, as most writes change nothing
    /// but amounts.
    fn kept<T: PartialEq + 'a>(&self, of: impl Fn(&'a Node) -> &'a T) -> bool {
        self.paired
            && self
                .old
                .iter()
                .zip(&self.new)
                .all(|(old, new)| of(old) == of(new))
    }
}

impl Indexes {
    /// Takes a changed tree in. Called once per changed tree and commit; `old` is `None` for a
    /// new tree, `new` for one that is gone (deleted, or moved below another root). Nodes that
    /// did not change are the same `Arc` in both, and cost next to nothing here.
    pub(crate) fn replace_tree(
        &mut self,
        number: TreeNumber,
        old: Option<&Tree>,
        new: Option<&Tree>,
    ) {
        let old = old.map_or(&[][..], |tree| &tree.nodes);
        let new = new.map_or(&[][..], |tree| &tree.nodes);
        let changed = Changed::between(old, new);
        self.replace_offers(number.0, &changed, new);
        if !changed.kept(|node| &node.traits) {
            replace_keys(&mut self.traits, number.0, traits_of(old), traits_of(new));
            let (old, new) = (traits_of(root(old)), traits_of(root(new)));
            replace_keys(&mut self.root_traits, number.0, old, new);
        }
        if !changed.kept(|node| &node.aggregates) {
            replace_keys(
                &mut self.aggregates,
                number.0,
                aggregates_of(old),
                aggregates_of(new),
            );
            let (old, new) = (aggregates_of(root(old)), aggregates_of(root(new)));
            replace_keys(&mut self.root_aggregates, number.0, old, new);
        }
        if new.len() > 1 {
            self.nested.insert(number.0);
        } else {
            self.nested.remove(number.0);
        }
    }

    /// Trees in which some provider may be able to give this amount of the class.
    pub fn offering(&self, class: ResourceClassId, amount: u64) -> Option<&TreeSet> {
        self.offers.get(&(class, amount.max(1).ilog2()))
    }

    /// Trees in which some provider has the trait.
    pub fn with_trait(&self, id: TraitId) -> Option<&TreeSet> {
        self.traits.get(&id)
    }

    /// Trees whose root has the trait.
    pub fn with_root_trait(&self, id: TraitId) -> Option<&TreeSet> {
        self.root_traits.get(&id)
    }

    /// Trees in which some provider is a member of the aggregate.
    pub fn with_member(&self, aggregate: &AggregateUuid) -> Option<&TreeSet> {
        self.aggregates.get(aggregate)
    }

    /// Trees whose root is a member of the aggregate.
    pub fn with_root_member(&self, aggregate: &AggregateUuid) -> Option<&TreeSet> {
        self.root_aggregates.get(aggregate)
    }

    /// Trees of more than one provider.
    pub fn nested(&self) -> &TreeSet {
        &self.nested
    }

    fn replace_offers(&mut self, number: u32, changed: &Changed<'_>, whole: &[Arc<Node>]) {
        let old = offers_of(changed.old.iter().copied());
        let new = offers_of(changed.new.iter().copied());
        for &(class, levels) in &new {
            for level in levels_of(&old, class)..levels {
                insert(&mut self.offers, (class, level), number);
            }
        }
        for &(class, levels) in &old {
            if levels_of(&new, class) < levels {
                for level in best_levels(whole, class, levels)..levels {
                    remove(&mut self.offers, &(class, level), number);
                }
            }
        }
    }
}

fn root(nodes: &[Arc<Node>]) -> &[Arc<Node>] {
    &nodes[..nodes.len().min(1)]
}

/// How many powers of two an offer reaches: 0 for nothing, 1 for 1, 2 for 2 and 3, and so on.
fn levels(stock: &Stock) -> u32 {
    u64::BITS - offer(stock).leading_zeros()
}

/// Per class, the levels of the best offer.
fn offers_of<'a>(nodes: impl Iterator<Item = &'a Arc<Node>>) -> Vec<(ResourceClassId, u32)> {
    let mut offers: Vec<(ResourceClassId, u32)> = Vec::new();
    for stock in nodes.flat_map(|node| &node.inventories) {
        match offers.iter_mut().find(|(class, _)| *class == stock.class) {
            Some((_, best)) => *best = levels(stock).max(*best),
            None => offers.push((stock.class, levels(stock))),
        }
    }
    offers
}

fn levels_of(offers: &[(ResourceClassId, u32)], class: ResourceClassId) -> u32 {
    offers
        .iter()
        .find(|(other, _)| *other == class)
        .map_or(0, |(_, levels)| *levels)
}

/// The levels of the best offer of one class, not looked at beyond `enough`.
fn best_levels(nodes: &[Arc<Node>], class: ResourceClassId, enough: u32) -> u32 {
    let mut best = 0;
    for stock in nodes.iter().flat_map(|node| &node.inventories) {
        if stock.class == class {
            best = best.max(levels(stock));
            if best >= enough {
                return enough;
            }
        }
    }
    best
}

fn traits_of(nodes: &[Arc<Node>]) -> Vec<TraitId> {
    sorted(
        nodes
            .iter()
            .flat_map(|node| node.traits.iter().copied())
            .collect(),
    )
}

fn aggregates_of(nodes: &[Arc<Node>]) -> Vec<AggregateUuid> {
    sorted(
        nodes
            .iter()
            .flat_map(|node| node.aggregates.iter().cloned())
            .collect(),
    )
}
fn sorted<T: Ord>(mut keys: Vec<T>) -> Vec<T> {
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn replace_keys<K: Ord + Clone>(
    sets: &mut OrdMap<K, TreeSet>,
    number: u32,
    old: Vec<K>,
    new: Vec<K>,
) {
    for key in &old {
        if new.binary_search(key).is_err() {
            remove(sets, key, number);
        }
    }
    for key in new {
        if old.binary_search(&key).is_err() {
            insert(sets, key, number);
        }
    }
}

fn insert<K: Ord + Clone>(sets: &mut OrdMap<K, TreeSet>, key: K, number: u32) {
    if sets.get(&key).is_none_or(|set| !set.contains(number)) {
        sets.entry(key).or_default().insert(number);
    }
}

fn remove<K: Ord + Clone>(sets: &mut OrdMap<K, TreeSet>, key: &K, number: u32) {
    let Some(set) = sets.get_mut(key) else { return };
    set.remove(number);
    if set.is_empty() {
        sets.remove(key);
    }
}
