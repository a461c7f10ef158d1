//! No command allocates more of an inventory than its capacity (Placement's rule for allocations).
//! An inventory may shrink below its usage; the existing allocations then stay, also in a copy of
//! the partition.

use placement_model::Command;

use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "no over-allocation";

/// Compares the usage of each inventory with its capacity after each command.
#[derive(Debug, Default)]
pub struct NoOverAllocation;

impl Invariant for NoOverAllocation {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        if let Command::FillPartition(_) = applied.stamped.command {
            return Ok(());
        }
        for (_, tree) in applied.after.trees() {
            for node in &tree.nodes {
                for stock in &node.inventories {
                    let capacity = stock.inventory.capacity_exact();
                    if stock.used as f64 <= capacity {
                        continue;
                    }
                    let before = applied.before.node_by_id(node.id);
                    let used = before
                        .and_then(|node| node.stock(stock.class))
                        .map_or(0, |stock| stock.used);
                    if stock.used > used {
                        return Err(format!(
                            "{} of {capacity} units of class {:?} of {} are allocated, {used} before",
                            stock.used, stock.class, node.uuid
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}
