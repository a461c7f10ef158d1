//! No inventory ever gives out more than its capacity. (Simulated clients never shrink one: then
//! the product allows the excess that is already there.)

use super::{Applied, Invariant, Providers};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct NoOverAllocation {
    known: Providers,
}

impl Invariant for NoOverAllocation {
    fn name(&self) -> &'static str {
        "no over-allocation"
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        for uuid in &self.known.0 {
            let (Some(stock), Some(used)) = (
                applied.before.inventories(uuid),
                applied.before.provider_usages(uuid),
            ) else {
                continue;
            };
            for (class, row) in &stock.inventories {
                let taken = used.usages.get(class).copied().unwrap_or_default();
                if taken as f64 > row.inventory.capacity_exact() {
                    let capacity = row.inventory.capacity();
                    return Err(format!("{taken} of {capacity} {class} of {uuid} are taken"));
                }
            }
        }
        self.known.learn(&applied.stamped.command);
        Ok(())
    }
}
