//! Indexes to select the trees worth searching: for each property a bitmap of the trees that have
//! it on some provider.
//!
//! A bitmap is a filter, not a proof: it only says that *some* provider of the tree has the
//! property. Bitmaps of root properties are exact.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::OrdMap;

use super::change::{ResourceClassId, TraitId};
use super::tree::{Node, Stock, Tree, TreeNumber};
use super::tree_set::TreeSet;
use crate::types::AggregateUuid;

/// Bitmaps over tree numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Indexes {
    /// Trees by class, and by bucket of the largest offer of any of their providers. A tree is in
    /// one bucket per class.
    offers: OrdMap<(ResourceClassId, u32), TreeSet>,
    /// The same by power of two instead of bucket, so that a search reads few sets even if the free
    /// amounts spread over a hundred buckets.
    powers: OrdMap<(ResourceClassId, u32), TreeSet>,
    traits: OrdMap<TraitId, TreeSet>,
    root_traits: OrdMap<TraitId, TreeSet>,
    aggregates: OrdMap<AggregateUuid, TreeSet>,
    root_aggregates: OrdMap<AggregateUuid, TreeSet>,
    nested: TreeSet,
}

/// The largest amount that this inventory can give to one request: the free units, at most
/// `max_unit`.
pub fn offer(stock: &Stock) -> u64 {
    let free = stock.inventory.free(stock.used);
    free.min(u64::from(stock.inventory.max_unit))
}

/// The differences between two values of one tree.
#[derive(Default)]
struct TreeDiff<'a> {
    /// The previous values of the nodes that may differ.
    old: Vec<&'a Node>,
    /// The new values of the nodes that may differ. If there are as many as in `old`, they
    /// correspond pairwise.
    new: Vec<&'a Node>,
    /// The nodes that are the same in both values.
    kept: Vec<&'a Node>,
}

impl<'a> TreeDiff<'a> {
    fn between(old: &'a [Arc<Node>], new: &'a [Arc<Node>]) -> Self {
        let mut changed = Self::default();
        if old.len() != new.len() {
            changed.old.extend(old.iter().map(|node| &**node));
            changed.new.extend(new.iter().map(|node| &**node));
            return changed;
        }
        for (old, new) in old.iter().zip(new) {
            if Arc::ptr_eq(old, new) {
                changed.kept.push(new);
            } else {
                changed.old.push(old);
                changed.new.push(new);
            }
        }
        changed
    }

    /// Whether a property of all nodes is unchanged. This is the usual case, since most writes
    /// change only amounts.
    fn keeps<T: PartialEq + 'a>(&self, of: impl Fn(&'a Node) -> &'a T) -> bool {
        let mut pairs = self.old.iter().zip(&self.new);
        self.old.len() == self.new.len() && pairs.all(|(old, new)| of(old) == of(new))
    }
}

impl Indexes {
    /// Updates the indexes for a changed tree. Called once per changed tree and commit. `old` is
    /// `None` for a new tree, `new` for a removed one (deleted, or moved below another root).
    /// Unchanged nodes are the same `Arc` in both and cost almost nothing.
    pub(crate) fn replace_tree(
        &mut self,
        number: TreeNumber,
        old: Option<&Tree>,
        new: Option<&Tree>,
    ) {
        let old = old.map_or(&[][..], |tree| &tree.nodes);
        let new = new.map_or(&[][..], |tree| &tree.nodes);
        let changed = TreeDiff::between(old, new);
        self.replace_offers(number.0, &changed);
        if !changed.keeps(|node| &node.traits) {
            let of = |nodes| keys(nodes, |node: &Node| node.traits.iter().copied());
            replace_keys(&mut self.traits, number.0, &of(old), of(new));
            let (old, new) = (of(root(old)), of(root(new)));
            replace_keys(&mut self.root_traits, number.0, &old, new);
        }
        if !changed.keeps(|node| &node.aggregates) {
            let of = |nodes| keys(nodes, |node: &Node| node.aggregates.iter().cloned());
            replace_keys(&mut self.aggregates, number.0, &of(old), of(new));
            let (old, new) = (of(root(old)), of(root(new)));
            replace_keys(&mut self.root_aggregates, number.0, &old, new);
        }
        if new.len() > 1 {
            self.nested.insert(number.0);
        } else {
            self.nested.remove(number.0);
        }
    }

    /// The sets of trees in which some provider may offer this amount of the class.
    pub fn offering(&self, class: ResourceClassId, amount: u64) -> impl Iterator<Item = &TreeSet> {
        let least = bucket(amount.max(1));
        // The first power of two whose buckets all offer enough.
        let whole = power(least - 1) + 1;
        let buckets = (class, least)..(class, first_bucket(whole));
        let powers = (class, whole)..=(class, u32::MAX);
        let sets = self.offers.range(buckets).chain(self.powers.range(powers));
        sets.map(|(_, set)| set)
    }

    /// The trees in which some provider has the trait.
    pub fn with_trait(&self, id: TraitId) -> Option<&TreeSet> {
        self.traits.get(&id)
    }

    /// The trees whose root has the trait.
    pub fn with_root_trait(&self, id: TraitId) -> Option<&TreeSet> {
        self.root_traits.get(&id)
    }

    /// The trees in which some provider is a member of the aggregate.
    pub fn with_member(&self, aggregate: &AggregateUuid) -> Option<&TreeSet> {
        self.aggregates.get(aggregate)
    }

    /// The trees whose root is a member of the aggregate.
    pub fn with_root_member(&self, aggregate: &AggregateUuid) -> Option<&TreeSet> {
        self.root_aggregates.get(aggregate)
    }

    /// The trees with more than one provider.
    pub fn nested(&self) -> &TreeSet {
        &self.nested
    }

    fn replace_offers(&mut self, number: u32, changed: &TreeDiff<'_>) {
        for (class, best) in best_buckets(changed) {
            let (before, after) = (best.before.max(best.kept), best.after.max(best.kept));
            self.move_offer(class, number, before, after);
        }
    }

    /// Moves a tree from one bucket of a class to another.
    fn move_offer(&mut self, class: ResourceClassId, number: u32, before: u32, after: u32) {
        move_tree(&mut self.offers, class, number, before, after);
        move_tree(&mut self.powers, class, number, power(before), power(after));
    }
}

fn root(nodes: &[Arc<Node>]) -> &[Arc<Node>] {
    &nodes[..nodes.len().min(1)]
}

/// The bucket of an amount: exact for small amounts, within one sixteenth for larger ones. A bucket
/// is determined by the position of the leading bit and the next four bits. Monotonic; 0 is the
/// bucket of 0.
fn bucket(amount: u64) -> u32 {
    let Some(power) = amount.checked_ilog2() else {
        return 0;
    };
    let fraction = if power < 4 {
        amount << (4 - power)
    } else {
        amount >> (power - 4)
    };
    // At most 16 * 64 + 16.
    16 * power + fraction as u32 % 16 + 1
}

/// The power of two of a bucket, counted from 1; 0 for the bucket of 0.
fn power(bucket: u32) -> u32 {
    bucket.div_ceil(16)
}

/// The first bucket of a power of two.
fn first_bucket(power: u32) -> u32 {
    16 * (power - 1) + 1
}

/// The buckets of the largest offers of one class.
#[derive(Default)]
struct Best {
    /// Largest previous offer of the changed nodes.
    before: u32,
    /// Largest new offer of the changed nodes.
    after: u32,
    /// Largest offer of the unchanged nodes. No further nodes are examined once this reaches
    /// `before` and `after`.
    kept: u32,
}

impl Best {
    fn is_settled(&self) -> bool {
        self.kept >= self.before.max(self.after)
    }
}

/// The classes whose largest offer among the changed nodes differs from before. Every node is
/// examined once, regardless of the number of classes.
fn best_buckets(changed: &TreeDiff<'_>) -> BTreeMap<ResourceClassId, Best> {
    let mut all: BTreeMap<_, Best> = BTreeMap::new();
    for stock in changed.old.iter().flat_map(|node| &node.inventories) {
        let best = all.entry(stock.class).or_default();
        best.before = best.before.max(bucket(offer(stock)));
    }
    for stock in changed.new.iter().flat_map(|node| &node.inventories) {
        let best = all.entry(stock.class).or_default();
        best.after = best.after.max(bucket(offer(stock)));
    }
    all.retain(|_, best| best.before != best.after);
    let mut open = all.len();
    let mut kept = changed.kept.iter().flat_map(|node| &node.inventories);
    while open > 0
        && let Some(stock) = kept.next()
    {
        if let Some(best) = all.get_mut(&stock.class)
            && !best.is_settled()
        {
            best.kept = best.kept.max(bucket(offer(stock)));
            open -= usize::from(best.is_settled());
        }
    }
    all
}

fn keys<'a, K: Ord, I: Iterator<Item = K>>(
    nodes: &'a [Arc<Node>],
    of: impl Fn(&'a Node) -> I,
) -> BTreeSet<K> {
    nodes.iter().flat_map(|node| of(node)).collect()
}

fn replace_keys<K: Ord + Clone>(
    sets: &mut OrdMap<K, TreeSet>,
    number: u32,
    old: &BTreeSet<K>,
    new: BTreeSet<K>,
) {
    for key in old.difference(&new) {
        remove(sets, key, number);
    }
    for key in new.into_iter().filter(|key| !old.contains(key)) {
        insert(sets, key, number);
    }
}

/// Moves a tree from one bucket or power of a class to another; 0 means no bucket.
fn move_tree(
    sets: &mut OrdMap<(ResourceClassId, u32), TreeSet>,
    class: ResourceClassId,
    number: u32,
    before: u32,
    after: u32,
) {
    if before == after {
        return;
    }
    if before > 0 {
        remove(sets, &(class, before), number);
    }
    if after > 0 {
        insert(sets, (class, after), number);
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

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    fn amounts() -> impl Strategy<Value = u64> {
        let of_any_length = (0..64_u32, any::<u64>()).prop_map(|(bits, amount)| amount >> bits);
        prop_oneof![0..70_u64, of_any_length]
    }

    proptest! {
        #[test]
        fn offering_finds_sufficient_trees_in_few_sets(
            offers in vec(btree_map(0..10_000_u32, amounts(), 0..500), 2),
            asked in vec(amounts(), 10),
        ) {
            let mut indexes = Indexes::default();
            let class = ResourceClassId(7);
            let mut before = BTreeMap::new();
            for offers in &offers {
                indexes.move_offer(ResourceClassId(6), 1, 0, bucket(5));
                indexes.move_offer(ResourceClassId(8), 1, 0, bucket(5));
                for number in before.keys().chain(offers.keys()).copied().collect::<BTreeSet<u32>>() {
                    let of = |offers: &BTreeMap<u32, u64>| offers.get(&number).map_or(0, |offer| bucket(*offer));
                    indexes.move_offer(class, number, of(&before), of(offers));
                }
                before.clone_from(offers);
            }
            for amount in asked {
                let least = bucket(amount.max(1));
                let sets: Vec<_> = indexes.offering(class, amount).collect();
                prop_assert!(sets.len() <= 15 + 64);
                let found: BTreeSet<u32> = sets.iter().flat_map(|set| set.iter()).collect();
                let enough = before.iter().filter(|(_, offer)| bucket(**offer) >= least);
                prop_assert_eq!(found, enough.map(|(number, _)| *number).collect());
            }
        }
    }

    #[test]
    fn buckets_are_monotonic_and_exact_for_small_amounts() {
        let buckets: Vec<u32> = (0..10_000).map(bucket).collect();
        assert!(buckets.is_sorted());
        assert!(buckets[..32].windows(2).all(|pair| pair[0] < pair[1]));
        assert!(bucket(u64::MAX) > bucket(1 << 63));
    }

    #[test]
    fn bucket_is_at_most_one_sixteenth_wide() {
        for amount in [100_u64, 1_000, 262_144] {
            assert!(bucket(amount) < bucket(amount + amount / 16 + 1));
        }
    }
}
