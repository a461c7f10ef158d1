//! Sums of allocations by resource class.

use std::collections::BTreeMap;

use placement_wire::consumers::ConsumerAllocation;

/// Amounts by resource class.
pub(crate) type Amounts = BTreeMap<String, u64>;

/// Adds allocations to `sum`.
pub(crate) fn add_held(sum: &mut Amounts, allocations: &[ConsumerAllocation<'_>]) {
    let held = allocations.iter();
    for (class, amount) in held.flat_map(|allocation| &allocation.resources) {
        let sum = sum.entry(class.clone().into_owned()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}
