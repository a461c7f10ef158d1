//! Sums of allocations.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::render::{list, pairs};

/// Amounts by resource class.
pub(crate) type Amounts = BTreeMap<String, u64>;

/// Adds all allocations of a consumer.
pub(crate) fn add_held(sum: &mut Amounts, consumer: &Value) {
    let held = list(&consumer["allocations"]).iter();
    for (class, amount) in held.flat_map(|allocation| pairs(&allocation["resources"])) {
        let sum = sum.entry(class.clone()).or_default();
        *sum = sum.saturating_add(amount.as_u64().unwrap_or_default());
    }
}
