//! Selects the trees worth searching. Combines bitmaps chunk by chunk, on demand.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::state::change::TraitId;
use crate::state::indexes::Indexes;
use crate::state::tree::TreeNumber;
use crate::state::tree_set::{CHUNK_TREES, Chunk, ChunkTrees, TreeSet};
use crate::types::AggregateUuid;

/// Alternatives: a tree must be in at least one of these sets.
pub(super) type Sets<'a> = Vec<Cow<'a, TreeSet>>;

/// Number of random trees to try before falling back to a scan.
const DRAWS_MAX: u32 = 32;

/// Iterates over the trees that pass, in ascending order of their numbers, which is the order in
/// which their roots were created.
#[derive(Default)]
pub(super) struct TreeFilter<'a> {
    /// A tree must be in one set of each entry. Without entries no tree passes.
    all: Vec<Sets<'a>>,
    /// A tree must be in none of these sets.
    none: Vec<&'a TreeSet>,
    /// The tree at which the walk begins; the walk wraps around and ends there.
    start: u32,
    round: bool,
    /// The remaining trees of the current chunk.
    pending: Option<ChunkTrees>,
    next_chunk: u32,
    looked: u64,
}

impl<'a> TreeFilter<'a> {
    /// Requires a tree to be in one set of each entry.
    pub(super) fn new(all: Vec<Sets<'a>>) -> Self {
        Self {
            all,
            ..Self::default()
        }
    }

    /// Whether any set is required. Without a required set no tree passes.
    pub(super) fn is_bounded(&self) -> bool {
        !self.all.is_empty()
    }

    /// Requires a tree to be in one of these sets.
    pub(super) fn require(&mut self, sets: Sets<'a>) {
        self.all.push(sets);
    }

    /// Excludes the trees of this set.
    pub(super) fn forbid(&mut self, set: &'a TreeSet) {
        self.none.push(set);
    }

    /// Returns the cost of the walk since the previous call, in steps of a search.
    pub(super) fn take_steps(&mut self) -> u64 {
        let steps = self.looked / 8;
        self.looked %= 8;
        steps
    }

    /// Starts the iteration at a passing tree that is derived from `seed`; the iteration wraps
    /// around. Each passing tree is equally likely to be the first, unless only few trees pass:
    /// then a tree after a long gap of tree numbers is more likely.
    ///
    /// `end` must be larger than any tree number.
    pub(super) fn start_anywhere(&mut self, seed: u64, end: u32) {
        let draws = (0..DRAWS_MAX).map(|draw| drawn(seed, draw, end));
        let found = draws.into_iter().find(|number| self.passes(*number));
        self.start = found.or_else(|| self.near(seed, end)).unwrap_or(0);
        self.next_chunk = self.start / CHUNK_TREES;
    }

    /// Number of trees that pass in the next chunk. A small cloud fits into one chunk.
    pub(super) fn next_chunk_len(&mut self) -> usize {
        if self.pending.is_none() {
            self.pending = self.go_on();
        }
        self.pending.as_ref().map_or(0, ChunkTrees::len) as usize
    }

    pub(super) fn passes(&mut self, number: u32) -> bool {
        self.looked += self.all.iter().map(Vec::len).sum::<usize>() as u64 / 4;
        let within = |sets: &Sets<'_>| sets.iter().any(|set| set.contains(number));
        self.all.iter().all(within) && !self.none.iter().any(|set| set.contains(number))
    }

    /// A random passing tree of the first chunk that has one, starting from a random chunk.
    fn near(&mut self, seed: u64, end: u32) -> Option<u32> {
        let from = drawn(seed, DRAWS_MAX, end) / CHUNK_TREES;
        let mut found = self.chunk_from(from).or_else(|| self.chunk_from(0))?;
        let trees = found.len();
        found.nth(drawn(seed, DRAWS_MAX + 1, trees) as usize)
    }

    /// The first chunk at or after this key in which a tree passes.
    fn chunk_from(&mut self, mut key: u32) -> Option<ChunkTrees> {
        loop {
            key = self.first_key_from(key)?;
            if let Some(chunk) = self.chunk(key) {
                return Some(ChunkTrees::new(key, chunk));
            }
            key += 1;
        }
    }

    fn first_key_from(&self, from: u32) -> Option<u32> {
        let mut first = (!self.all.is_empty()).then_some(from)?;
        for sets in &self.all {
            first = first.max(sets.iter().filter_map(|set| set.next_chunk(from)).min()?);
        }
        Some(first)
    }

    fn chunk(&mut self, key: u32) -> Option<Chunk> {
        let mut result: Chunk = [u64::MAX; _];
        for sets in &self.all {
            let mut any: Chunk = [0; _];
            for chunk in sets.iter().filter_map(|set| set.chunk(key)) {
                merge(&mut any, chunk, |any, word| *any |= word);
            }
            merge(&mut result, &any, |result, word| *result &= word);
            self.looked += 1 + sets.len() as u64;
        }
        for chunk in self.none.iter().filter_map(|set| set.chunk(key)) {
            merge(&mut result, chunk, |result, word| *result &= !word);
        }
        result.iter().any(|word| *word != 0).then_some(result)
    }

    /// The next chunk of the walk. The chunk in which the walk begins is returned twice: first with
    /// the trees from `start` on, at the end with the trees before `start`.
    fn go_on(&mut self) -> Option<ChunkTrees> {
        let begun = self.start / CHUNK_TREES;
        let found = self.chunk_from(self.next_chunk);
        let Some(mut found) = found.filter(|found| !self.round || found.key <= begun) else {
            if self.round || self.start == 0 {
                return None;
            }
            self.round = true;
            self.next_chunk = 0;
            return self.go_on();
        };
        self.next_chunk = found.key + 1;
        if found.key == begun {
            for (word, first) in found
                .chunk
                .iter_mut()
                .zip((begun * CHUNK_TREES..).step_by(64))
            {
                let before = (0..64)
                    .filter(|bit| first + bit < self.start)
                    .fold(0, |mask, bit| mask | 1 << bit);
                *word &= if self.round { before } else { !before };
            }
        }
        Some(found)
    }
}

impl Iterator for TreeFilter<'_> {
    type Item = TreeNumber;

    fn next(&mut self) -> Option<TreeNumber> {
        loop {
            if let Some(number) = self.pending.as_mut().and_then(Iterator::next) {
                return Some(TreeNumber(number));
            }
            self.pending = Some(self.go_on()?);
        }
    }
}

/// A number below `end`, derived from the seed by SplitMix64.
pub(super) fn drawn(seed: u64, draw: u32, end: u32) -> u32 {
    let mut mixed = seed.wrapping_add((u64::from(draw) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    // Multiplying the upper half by `end` is as uniform as a division, and cheaper.
    (((mixed >> 32) * u64::from(end)) >> 32) as u32
}

fn merge(into: &mut Chunk, from: &Chunk, mut with: impl FnMut(&mut u64, u64)) {
    for (into, from) in into.iter_mut().zip(from) {
        with(into, *from);
    }
}

/// The trees in which some provider has any of these traits.
pub(super) fn with_any_trait<'a, 'b>(
    indexes: &'a Indexes,
    any: impl IntoIterator<Item = &'b TraitId>,
) -> Sets<'a> {
    let sets = any.into_iter().filter_map(|id| indexes.with_trait(*id));
    sets.map(Cow::Borrowed).collect()
}

/// The trees in which some provider is a member of any of these aggregates.
pub(super) fn with_any_member<'a>(indexes: &'a Indexes, any: &BTreeSet<AggregateUuid>) -> Sets<'a> {
    let sets = any.iter().filter_map(|id| indexes.with_member(id));
    sets.map(Cow::Borrowed).collect()
}

/// The trees with a trait of each set, not necessarily on the same provider.
pub(super) fn with_any_traits<'a>(
    indexes: &'a Indexes,
    sets: &[BTreeSet<TraitId>],
) -> TreeFilter<'a> {
    let sets = sets.iter().map(|any| with_any_trait(indexes, any));
    TreeFilter::new(sets.collect())
}

/// The trees with a member of an aggregate of each set, not necessarily the same provider.
pub(super) fn with_any_members<'a>(
    indexes: &'a Indexes,
    sets: &[BTreeSet<AggregateUuid>],
) -> TreeFilter<'a> {
    let sets = sets.iter().map(|any| with_any_member(indexes, any));
    TreeFilter::new(sets.collect())
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;

    fn numbers() -> impl Strategy<Value = BTreeSet<u32>> {
        let number = prop_oneof![0..200_u32, 2_000..2_100_u32, 0..20_000_u32];
        btree_set(number, 0..60)
    }

    proptest! {
        #[test]
        fn filter_yields_required_trees_without_forbidden_ones(
            all in vec(vec(numbers(), 0..3), 1..4),
            none in numbers(),
            seed in proptest::option::of(any::<u64>()),
        ) {
            let none: TreeSet = none.into_iter().collect();
            let mut filter = TreeFilter::default();
            for sets in &all {
                let sets = sets.iter().map(|set| Cow::Owned(set.iter().copied().collect()));
                filter.require(sets.collect());
            }
            filter.forbid(&none);
            if let Some(seed) = seed {
                filter.start_anywhere(seed, 20_000);
            }
            let found: Vec<u32> = filter.by_ref().map(|number| number.0).collect();
            prop_assert_eq!(filter.next(), None);
            let passes = |number: &u32| {
                let within = |sets: &Vec<BTreeSet<u32>>| sets.iter().any(|set| set.contains(number));
                all.iter().all(within) && !none.contains(*number)
            };
            let mut sorted = found.clone();
            sorted.sort_unstable();
            prop_assert_eq!(&sorted, &(0..20_000).filter(passes).collect::<Vec<_>>());
            let turns = found.windows(2).filter(|pair| pair[0] > pair[1]).count();
            prop_assert!(turns <= usize::from(seed.is_some()), "the walk wraps around more than once");
        }
    }

    #[test]
    fn walk_can_begin_at_each_of_few_distant_trees() {
        let trees: TreeSet = [7, 8, 9, 90_000].into_iter().collect();
        let firsts: BTreeSet<u32> = (0..200)
            .filter_map(|seed| {
                let mut filter = TreeFilter::default();
                filter.require(vec![Cow::Borrowed(&trees)]);
                filter.start_anywhere(seed, 100_000);
                filter.next().map(|number| number.0)
            })
            .collect();
        assert_eq!(firsts, trees.iter().collect());
    }

    #[test]
    fn numbers_are_drawn_evenly() {
        let mut counts = [0; 10];
        for draw in 0..10_000 {
            counts[drawn(42, draw, 10) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..1_200).contains(count)),
            "{counts:?}"
        );
    }
}
