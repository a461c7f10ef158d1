//! A fault that is to happen.

use std::fmt;
use std::time::Duration;

use super::fault::Fault;

/// A fault with its time.
#[derive(Debug, Clone, Copy)]
pub struct Planned {
    /// When it begins, since the storm began.
    pub begins: Duration,
    /// How long it lasts.
    pub lasts: Duration,
    /// What it is.
    pub fault: Fault,
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (begins, lasts) = (self.begins.as_secs_f64(), self.lasts.as_secs_f64());
        write!(f, "{begins:.3} s for {lasts:.3} s: {}", self.fault)
    }
}
