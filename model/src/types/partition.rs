//! Partitions: what they are called, and what stands for them in rows.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::InvalidName;
use super::names::{name, shown_as_text, written_as_text};

/// Stands for a partition in the log, in rows and in keys. It is handed out once.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct PartitionId(pub u16);

impl PartitionId {
    /// The partition that is always there. What was written before there were others is in it.
    pub const DEFAULT: Self = Self(0);

    /// Whether it is the one that is always there: it is not written down.
    pub fn is_default(&self) -> bool {
        *self == Self::DEFAULT
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The partition that a write is for, and by which of its routes it came: how often they had
/// changed when the request was routed. As a number: the id in the lower 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub struct Destination {
    /// The partition.
    pub partition: PartitionId,
    /// [`Routing::changes`](crate::state::change::Routing::changes), as the node knew it.
    pub routes: u32,
}

impl Destination {
    /// The default partition, by its first routes. Commands for the whole cluster go there.
    pub const DEFAULT: Self = Self {
        partition: PartitionId::DEFAULT,
        routes: 0,
    };

    /// Whether it is [`Destination::DEFAULT`]: that is not written down.
    pub fn is_default(&self) -> bool {
        *self == Self::DEFAULT
    }
}

impl From<u64> for Destination {
    fn from(both: u64) -> Self {
        let low = |number: u64| u16::try_from(number & 0xffff).expect("16 bits are left");
        Self {
            partition: PartitionId(low(both)),
            // More bits were never written.
            routes: u32::try_from(both >> 16).unwrap_or(u32::MAX),
        }
    }
}

impl From<Destination> for u64 {
    fn from(destination: Destination) -> Self {
        Self::from(destination.routes) << 16 | Self::from(destination.partition.0)
    }
}

const FORM: &str = "1 to 64 characters out of a-z, 0-9, -, _ and ., the first a letter or a digit";

fn is_partition_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let allowed = |byte: u8| plain(byte) || matches!(byte, b'-' | b'_' | b'.');
    text.len() <= 64 && text.bytes().next().is_some_and(plain) && text.bytes().all(allowed)
}

name!(
    /// The name of a partition, by which operators know it.
    PartitionName, "partition name", is_partition_name, FORM, "{}"
);

impl PartitionName {
    /// What the partition that is always there is called.
    pub const DEFAULT: &str = "default";

    /// Whether it is the name of the partition that is always there.
    pub fn is_default(&self) -> bool {
        self.as_str() == Self::DEFAULT
    }
}

/// [`PartitionName::DEFAULT`].
impl Default for PartitionName {
    fn default() -> Self {
        Self(Arc::from(Self::DEFAULT))
    }
}

/// How many rows a partition has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Filled {
    /// Resource providers.
    pub providers: u64,
    /// Consumers.
    pub consumers: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_one_number() {
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
    fn a_name_fits_into_urls_logs_and_shells() {
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
