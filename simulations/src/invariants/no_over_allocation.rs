//! No command takes more of an inventory than its capacity allows (Placement's rule for
//! allocations). An inventory may be made smaller than what is taken of it, and then what is there
//! stays, also where it is copied to.

use placement_model::Command;

use super::{Applied, Invariant};

/// Its name in complaints.
pub const NAME: &str = "no over-allocation";

/// See the module.
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
                    let used = before.and_then(|node| node.stock(stock.class));
                    let used = used.map_or(0, |stock| stock.used);
                    if stock.used > used {
                        return Err(format!(
                            "{} of {capacity} of class {:?} of {} are taken, after {used}",
                            stock.used, stock.class, node.uuid
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}
