//! Random choices from a list.

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

/// Picks a random element of a list. Panics if the list is empty.
pub(crate) fn one_of<T: Copy>(random: &mut SmallRng, of: &[T]) -> T {
    *of.choose(random).expect("not empty")
}
