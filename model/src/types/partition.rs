//! Identifiers and names of partitions.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::InvalidName;
use super::names::{name, shown_as_text, written_as_text};

/// The id of a partition in the log, in rows and in keys. Ids are never reused.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct PartitionId(pub u16);

impl PartitionId {
    /// The default partition, which always exists. It contains all rows that were written before
    /// partitions were introduced.
    pub const DEFAULT: Self = Self(0);

    /// Whether this is the default partition, whose id is not serialized.
    pub fn is_default(&self) -> bool {
        *self == Self::DEFAULT
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The partition of a write, and the number of its route changes when the request was routed.
/// Serialized as one number with the id in the lower 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub struct Destination {
    /// The partition of the write.
    pub partition: PartitionId,
    /// [`Routing::changes`](crate::state::change::Routing::changes) as known to the routing node.
    pub routes: u32,
}

impl Destination {
    /// The default partition with its initial routes, also used for commands of the whole cluster.
    pub const DEFAULT: Self = Self {
        partition: PartitionId::DEFAULT,
        routes: 0,
    };

    /// Whether this is [`Destination::DEFAULT`], which is not serialized.
    pub fn is_default(&self) -> bool {
        *self == Self::DEFAULT
    }
}

impl From<u64> for Destination {
    fn from(both: u64) -> Self {
        let low = |number: u64| u16::try_from(number & 0xffff).expect("the mask leaves 16 bits");
        Self {
            partition: PartitionId(low(both)),
            // Larger values are never serialized.
            routes: u32::try_from(both >> 16).unwrap_or(u32::MAX),
        }
    }
}

impl From<Destination> for u64 {
    fn from(destination: Destination) -> Self {
        Self::from(destination.routes) << 16 | Self::from(destination.partition.0)
    }
}

const FORM: &str =
    "1 to 64 characters from a-z, 0-9, -, _ and ., starting with a letter or a digit";

fn is_partition_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let allowed = |byte: u8| plain(byte) || matches!(byte, b'-' | b'_' | b'.');
    text.len() <= 64 && text.bytes().next().is_some_and(plain) && text.bytes().all(allowed)
}

name!(
    /// The name of a partition, as used by operators.
    PartitionName, "partition name", is_partition_name, FORM, "{}"
);

impl PartitionName {
    /// The name of the default partition.
    pub const DEFAULT: &str = "default";

    /// Whether this is the name of the default partition.
    pub fn is_default(&self) -> bool {
        self.as_str() == Self::DEFAULT
    }
}

/// The name of the default partition.
impl Default for PartitionName {
    fn default() -> Self {
        Self(Arc::from(Self::DEFAULT))
    }
}

/// Number of rows in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Filled {
    /// Number of resource providers.
    pub providers: u64,
    /// Number of consumer records.
    pub consumers: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destination_converts_to_one_number() {
        for (partition, routes, number) in [(0, 0, 0), (7, 0, 7), (0, 1, 1 << 16)] {
            let destination = Destination {
                partition: PartitionId(partition),
                routes,
            };
            assert_eq!(u64::from(destination), number);
            assert_eq!(Destination::from(number), destination);
        }
        let last = Destination::from(u64::MAX);
        assert_eq!((last.partition.0, last.routes), (u16::MAX, u32::MAX));
    }

    #[test]
    fn name_is_safe_in_urls_logs_and_shells() {
        let longest = "a".repeat(64);
        for name in ["a", "region-one", "9.b_c", &longest] {
            assert_eq!(name.parse::<PartitionName>().unwrap().as_str(), name);
        }
        let longer = "a".repeat(65);
        for name in ["", "-a", ".", "A", "a b", "a/b", "é", &longer] {
            assert!(name.parse::<PartitionName>().is_err(), "{name}");
        }
    }
}
