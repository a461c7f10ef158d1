//! Faults with their times in a plan.

use std::fmt;
use std::time::Duration;

use super::fault::Fault;

/// A fault with its planned time.
#[derive(Debug, Clone, Copy)]
pub struct Planned {
    /// When the fault begins, as time since the start of the fault phase.
    pub begins: Duration,
    /// How long the fault lasts.
    pub lasts: Duration,
    /// The fault. If it aims at the leader, it hits the node that leads when it begins.
    pub fault: Fault,
}

impl Planned {
    /// Creates a planned fault, with times in milliseconds.
    pub const fn new(begins_ms: u64, lasts_ms: u64, fault: Fault) -> Self {
        Self {
            begins: Duration::from_millis(begins_ms),
            lasts: Duration::from_millis(lasts_ms),
            fault,
        }
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (begins, lasts) = (self.begins.as_secs_f64(), self.lasts.as_secs_f64());
        write!(f, "{begins:.3} s for {lasts:.3} s: {}", self.fault)
    }
}
