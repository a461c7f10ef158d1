//! The order in which sorted entries are put into a persistent map so that it has no gaps.

/// Every other entry, and then those between. A leaf that is full is split in the middle, so
/// entries that come in rising order leave half of each behind them empty; this way the second half
/// of the entries fills it.
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
