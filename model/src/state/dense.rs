//! The insertion order of sorted entries that leaves no gaps in a persistent map.

/// Returns every second entry, and then the entries between them. A full leaf is split in the
/// middle, so insertion in ascending order leaves every leaf half empty. In this order the second
/// half of the entries fills the leaves.
pub(crate) fn dense<T>(sorted: Vec<T>) -> impl Iterator<Item = T> {
    let half = sorted.len().div_ceil(2);
    let (mut first, mut between) = (Vec::with_capacity(half), Vec::with_capacity(half));
    let mut sorted = sorted.into_iter();
    while let Some(entry) = sorted.next() {
        first.push(entry);
        between.extend(sorted.next());
    }
    first.into_iter().chain(between)
}
