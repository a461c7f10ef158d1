//! One provider's stock of one resource class.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

/// An inventory record, in units of its resource class.
///
/// The edge guarantees the ranges: `total` 1..=2³¹-1, `reserved` 0..=2³¹-1, the units and
/// `step_size` 1..=2³¹-1, `allocation_ratio` finite and not negative. `min_unit > max_unit` and
/// `reserved > total` are representable, as they are upstream.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Inventory {
    /// Units that exist.
    pub total: u32,
    /// Units kept back from placement.
    pub reserved: u32,
    /// Smallest amount of one allocation.
    pub min_unit: u32,
    /// Largest amount of one allocation.
    pub max_unit: u32,
    /// Every amount is a multiple of this.
    pub step_size: u32,
    /// Overcommit: capacity is `(total - reserved) * allocation_ratio`.
    pub allocation_ratio: f64,
}

impl Inventory {
    /// `(total - reserved) * allocation_ratio`, exact: what one amount plus the usage is compared with.
    pub fn capacity_exact(&self) -> f64 {
        (f64::from(self.total) - f64::from(self.reserved)) * self.allocation_ratio
    }

    /// The capacity truncated towards zero, as provider summaries show it.
    pub fn capacity(&self) -> i64 {
        self.capacity_exact() as i64
    }

    /// Whether one allocation may have this amount (min_unit, max_unit and step_size).
    pub fn permits_amount(&self, amount: u64) -> bool {
        amount >= u64::from(self.min_unit)
            && amount <= u64::from(self.max_unit)
            && amount.is_multiple_of(u64::from(self.step_size))
    }
}

/// Ratios are compared bit by bit, so that equality is one even for a NaN.
impl PartialEq for Inventory {
    fn eq(&self, other: &Self) -> bool {
        let fields = |i: &Self| {
            (
                i.total,
                i.reserved,
                i.min_unit,
                i.max_unit,
                i.step_size,
                i.allocation_ratio.to_bits(),
            )
        };
        fields(self) == fields(other)
    }
}

impl Eq for Inventory {}

impl Hash for Inventory {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (
            self.total,
            self.reserved,
            self.min_unit,
            self.max_unit,
            self.step_size,
        )
            .hash(hasher);
        self.allocation_ratio.to_bits().hash(hasher);
    }
}
