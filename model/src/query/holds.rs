//! Numbers of holds, for the leader and for metrics.

use crate::state::State;
use crate::types::{ConsumerUuid, Hold, Timestamp};

/// Numbers of holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HoldCounts {
    /// All holds.
    pub holds: usize,
    /// Holds whose due time has come.
    pub overdue: usize,
}

impl State {
    /// The numbers of holds at the time `at`.
    pub fn hold_counts(&self, at: Timestamp) -> HoldCounts {
        let holds = self.consumers.holds();
        HoldCounts {
            holds: holds.len(),
            overdue: holds.overdue(at),
        }
    }

    /// The end of the lease that ends first.
    pub fn next_lease_end(&self) -> Option<Timestamp> {
        self.consumers.holds().next_lease_end()
    }

    /// The hold of a consumer.
    pub fn hold(&self, consumer: &ConsumerUuid) -> Option<&Hold> {
        self.consumers.row(consumer)?.hold.as_deref()
    }
}
