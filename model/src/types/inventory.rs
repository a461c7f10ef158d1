//! The inventory of one resource class on one provider.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// An inventory record, in units of its resource class.
///
/// The edge guarantees the ranges: `total` 1..=2³¹-1, `reserved` 0..=2³¹-1, the units and
/// `step_size` 1..=2³¹-1, `allocation_ratio` finite and not negative. `min_unit > max_unit` and
/// `reserved > total` are representable, as they are upstream.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Inventory {
    /// Total units, before overcommit.
    pub total: u32,
    /// Units that are not available for allocation.
    pub reserved: u32,
    /// Minimum amount of one allocation.
    pub min_unit: u32,
    /// Maximum amount of one allocation.
    pub max_unit: u32,
    /// The amount of every allocation is a multiple of this.
    pub step_size: u32,
    /// Overcommit factor: the capacity is `(total - reserved) * allocation_ratio`.
    pub allocation_ratio: f64,
}

impl Inventory {
    /// `(total - reserved) * allocation_ratio` without truncation. A claim is compared with this
    /// value.
    pub fn capacity_exact(&self) -> f64 {
        (f64::from(self.total) - f64::from(self.reserved)) * self.allocation_ratio
    }

    /// The capacity truncated towards zero, as provider summaries show it.
    pub fn capacity(&self) -> Capacity {
        Capacity(self.capacity_exact().trunc())
    }

    /// The whole units of the capacity minus `used`, at most `u64::MAX`.
    pub fn free(&self, used: u64) -> u64 {
        /// 2^64, because `f64` cannot represent `u64::MAX` exactly.
        const BOUND: f64 = 18_446_744_073_709_551_616.0;
        let capacity = self.capacity_exact();
        // `as` truncates and saturates. Only large capacities need `i128`, which is slower.
        if capacity < BOUND {
            return (capacity as u64).saturating_sub(used);
        }
        let left = (capacity as i128).saturating_sub(i128::from(used));
        u64::try_from(left.max(0)).unwrap_or(u64::MAX)
    }

    /// Whether one allocation may have this amount (min_unit, max_unit and step_size).
    pub fn permits_amount(&self, amount: u64) -> bool {
        amount >= u64::from(self.min_unit)
            && amount <= u64::from(self.max_unit)
            && amount.is_multiple_of(u64::from(self.step_size))
    }
}

/// A capacity in whole units: an integer of up to 160 bits, since a float can exceed any integer
/// type. Negative if `reserved` exceeds `total`. `Display` prints the same digits as Python's
/// `int()` of the float.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Capacity(f64);

/// The product of finite numbers within the ranges of [`Inventory`] is not NaN.
impl Eq for Capacity {}

impl Capacity {
    /// A capacity of 0 units.
    pub const ZERO: Self = Self(0.0);

    /// The units as a float, which may be rounded.
    pub fn as_f64(self) -> f64 {
        self.0
    }

    /// The units as an `i64`, if they fit.
    pub fn small(self) -> Option<i64> {
        // 2^63, because `f64` cannot represent `i64::MAX` exactly.
        const BOUND: f64 = 9_223_372_036_854_775_808.0;
        (-BOUND..BOUND).contains(&self.0).then_some(self.0 as i64)
    }
}

impl AddAssign for Capacity {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Adding 0.0 turns a negative zero into a positive one.
        write!(f, "{:.0}", self.0 + 0.0)
    }
}

impl Inventory {
    /// The value to compare and hash. The ratio is compared bitwise, so that equality is reflexive
    /// even for NaN.
    fn bits(&self) -> ([u32; 5], u64) {
        let whole = [
            self.total,
            self.reserved,
            self.min_unit,
            self.max_unit,
            self.step_size,
        ];
        (whole, self.allocation_ratio.to_bits())
    }
}

impl PartialEq for Inventory {
    fn eq(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }
}

impl Eq for Inventory {}

impl Hash for Inventory {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.bits().hash(hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory(total: u32, reserved: u32, allocation_ratio: f64) -> Inventory {
        Inventory {
            total,
            reserved,
            min_unit: 1,
            max_unit: 1,
            step_size: 1,
            allocation_ratio,
        }
    }

    /// Expected values from Python 3.11: `int((total - reserved) * allocation_ratio)`.
    #[test]
    fn capacity_has_the_same_digits_as_in_python() {
        for (total, reserved, ratio, digits) in [
            (8, 1, 1.5, "10"),
            (8, 8, 1.5, "0"),
            (1, 2, 0.5, "0"),
            (1, 3, 1.0, "-2"),
            (2_147_483_647, 0, 1e-7, "214"),
            (2_147_483_647, 0, 16_777_217.0, "36028799149670400"),
            (1, 0, 9_223_372_036_854_774_784.0, "9223372036854774784"),
            (1, 0, 9_223_372_036_854_775_808.0, "9223372036854775808"),
            (2_147_483_647, 0, 1e19, "21474836469999998919981924352"),
            (1, 3, 1e30, "-2000000000000000039769249677312"),
            (1, 0, 3.40282e38, "340282000000000014192072600942972764160"),
        ] {
            let capacity = inventory(total, reserved, ratio).capacity();
            assert_eq!(capacity.to_string(), digits);
            assert_eq!(capacity.small(), digits.parse().ok(), "{digits}");
        }
    }

    #[test]
    fn free_units_are_never_negative_and_never_wrap() {
        assert_eq!(inventory(8, 0, 1.0).free(3), 5);
        assert_eq!(inventory(8, 1, 1.5).free(3), 7);
        assert_eq!(inventory(8, 0, 1.0).free(u64::MAX), 0);
        assert_eq!(inventory(1, 2, 0.5).free(0), 0);
        assert_eq!(inventory(1, 3, 3.40282e38).free(1), 0);
        assert_eq!(inventory(1, 0, 1e19).free(1), 9_999_999_999_999_999_999);
        let over = inventory(1, 0, 18_446_744_073_709_551_616.0);
        assert_eq!(
            [over.free(0), over.free(1), over.free(5)],
            [u64::MAX, u64::MAX, u64::MAX - 4]
        );
        let vast = inventory(2_147_483_647, 0, 3.40282e38);
        assert_eq!(vast.free(u64::MAX), u64::MAX);
    }
}
