//! A set of tree numbers: a bitmap in copy-on-write chunks, so that cloning is cheap and a reader's
//! copy is immutable.

use std::sync::Arc;

use imbl::OrdMap;

/// Number of tree numbers per chunk.
pub const CHUNK_TREES: u32 = 2048;

const WORDS: usize = (CHUNK_TREES / 64) as usize;

/// A bitmap of [`CHUNK_TREES`] consecutive tree numbers.
pub type Chunk = [u64; WORDS];

/// A set of tree numbers. Chunks without any bit are absent, so equal sets are equal values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeSet {
    chunks: OrdMap<u32, Arc<Chunk>>,
}

fn position(number: u32) -> (u32, usize, u64) {
    let bit = number % CHUNK_TREES;
    (number / CHUNK_TREES, (bit / 64) as usize, 1 << (bit % 64))
}

impl TreeSet {
    /// Adds a tree to the set.
    pub fn insert(&mut self, number: u32) {
        let (key, word, bit) = position(number);
        if let Some(chunk) = self.chunks.get_mut(&key) {
            if chunk[word] & bit == 0 {
                Arc::make_mut(chunk)[word] |= bit;
            }
        } else {
            let mut chunk = [0; WORDS];
            chunk[word] = bit;
            self.chunks.insert(key, Arc::new(chunk));
        }
    }

    /// Removes a tree from the set.
    pub fn remove(&mut self, number: u32) {
        let (key, word, bit) = position(number);
        let Some(chunk) = self.chunks.get_mut(&key) else {
            return;
        };
        if chunk[word] & bit == 0 {
            return;
        }
        let chunk = Arc::make_mut(chunk);
        chunk[word] &= !bit;
        if chunk.iter().all(|word| *word == 0) {
            self.chunks.remove(&key);
        }
    }

    /// Adds all trees of another set.
    pub fn absorb(&mut self, other: &Self) {
        if self.is_empty() {
            self.clone_from(other);
            return;
        }
        for (key, chunk) in &other.chunks {
            match self.chunks.get_mut(key) {
                Some(own) => {
                    for (own, word) in Arc::make_mut(own).iter_mut().zip(chunk.iter()) {
                        *own |= word;
                    }
                }
                None => drop(self.chunks.insert(*key, Arc::clone(chunk))),
            }
        }
    }

    /// Whether the set contains a tree.
    pub fn contains(&self, number: u32) -> bool {
        let (key, word, bit) = position(number);
        let chunk = self.chunks.get(&key);
        chunk.is_some_and(|chunk| chunk[word] & bit != 0)
    }

    /// Whether the set contains no tree.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The chunk with this key (tree number divided by [`CHUNK_TREES`]), if any bit of it is set.
    pub fn chunk(&self, key: u32) -> Option<&Chunk> {
        self.chunks.get(&key).map(Arc::as_ref)
    }

    /// The first key at or after `from` with a chunk.
    pub fn next_chunk(&self, from: u32) -> Option<u32> {
        // Often this key has a chunk, and a lookup costs less than an iterator.
        if self.chunks.contains_key(&from) {
            return Some(from);
        }
        self.chunks.range(from..).next().map(|(key, _)| *key)
    }

    /// The trees in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let chunks = self.chunks.iter();
        chunks.flat_map(|(key, chunk)| ChunkTrees::new(*key, **chunk))
    }
}

impl FromIterator<u32> for TreeSet {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut set = Self::default();
        for number in numbers {
            set.insert(number);
        }
        set
    }
}

/// The tree numbers of one chunk, in ascending order.
pub(crate) struct ChunkTrees {
    /// The key of the chunk.
    pub(crate) key: u32,
    /// The remaining bits of the chunk.
    pub(crate) chunk: Chunk,
    /// No bits remain before this word.
    word: usize,
}

impl ChunkTrees {
    pub(crate) fn new(key: u32, chunk: Chunk) -> Self {
        let word = 0;
        Self { key, chunk, word }
    }

    /// Number of remaining trees.
    pub(crate) fn len(&self) -> u32 {
        self.chunk.iter().map(|word| word.count_ones()).sum()
    }
}

impl Iterator for ChunkTrees {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let rest = self.chunk.get_mut(self.word..)?;
        let empty = rest.iter().position(|word| *word != 0)?;
        let word = &mut rest[empty];
        let bit = word.trailing_zeros();
        *word &= *word - 1;
        self.word += empty;
        Some(self.key * CHUNK_TREES + self.word as u32 * 64 + bit)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::{btree_set, vec};
    use proptest::{prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn iteration_is_sorted_and_clones_are_independent() {
        let numbers = [0, 1, 63, 64, 2047, 2048, 70_000, u32::MAX];
        let mut set: TreeSet = numbers.iter().rev().copied().collect();
        let before = set.clone();
        assert_eq!(set.iter().collect::<Vec<_>>(), numbers);
        set.remove(64);
        set.remove(70_000);
        set.remove(5);
        assert!(!set.contains(64) && set.contains(63));
        assert_eq!(before.iter().collect::<Vec<_>>(), numbers);
    }

    proptest! {
        #[test]
        fn absorbing_sets_yields_their_union(
            sets in vec(btree_set(0..20 * CHUNK_TREES, 0..40), 1..5),
        ) {
            let mut all = TreeSet::default();
            let mut expected = BTreeSet::new();
            for set in &sets {
                let other: TreeSet = set.iter().copied().collect();
                all.absorb(&other);
                expected.extend(set);
                prop_assert_eq!(other.iter().collect::<BTreeSet<_>>(), set.clone());
                prop_assert_eq!(all.iter().collect::<Vec<_>>(), Vec::from_iter(expected.clone()));
            }
            prop_assert_eq!(all, expected.into_iter().collect());
        }
    }
}
