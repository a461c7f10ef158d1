//! Random choices.

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

/// One of at least one.
pub(crate) fn one_of<T: Copy>(random: &mut SmallRng, of: &[T]) -> T {
    *of.choose(random).expect("not empty")
}
