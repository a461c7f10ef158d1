//! Sums of allocations by resource class.

use std::collections::BTreeMap;

use placement_wire::consumers::Consumer;

/// Amounts by resource class.
pub(crate) type Amounts = BTreeMap<String, u64>;

/// Adds all allocations of a consumer to `sum`.
pub(crate) fn add_held(sum: &mut Amounts, consumer: &Consumer<'_>) {
    let held = consumer.allocations.iter();
    for (class, amount) in held.flat_map(|allocation| &allocation.resources) {
        let sum = sum.entry(class.clone().into_owned()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}
