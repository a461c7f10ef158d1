//! Capacities, which may exceed the integer types.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Units of a capacity: an integer if it fits, else a float. Negative if more units are reserved
/// than exist.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Capacity {
    /// Exact number of units.
    Units(i64),
    /// Number of units as a float, rounded.
    Large(f64),
}

impl Capacity {
    /// The units as a float, rounded.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Units(units) => units as f64,
            Self::Large(units) => units,
        }
    }

    /// Whether `used` exceeds this capacity.
    pub fn is_exceeded_by(self, used: u64) -> bool {
        match self {
            Self::Units(units) => i128::from(used) > i128::from(units),
            Self::Large(units) => used as f64 > units,
        }
    }

    /// The units, clipped to the range of `u64`.
    pub fn clipped(self) -> u64 {
        match self {
            Self::Units(units) => u64::try_from(units).unwrap_or(0),
            Self::Large(units) => units as u64,
        }
    }
}

impl Default for Capacity {
    fn default() -> Self {
        Self::Units(0)
    }
}

impl From<i64> for Capacity {
    fn from(units: i64) -> Self {
        Self::Units(units)
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Units(units) => units.fmt(f),
            Self::Large(units) => units.fmt(f),
        }
    }
}
