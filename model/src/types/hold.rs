//! Holds: allocations that are kept for other consumers, or for a limited time.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{ConsumerUuid, Timestamp};

/// Makes the allocations of a consumer a hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hold {
    /// The consumers for whose allocations the room is kept: a write that gives one of them
    /// allocations ends the hold.
    pub kept_for: BTreeSet<ConsumerUuid>,
    /// When the hold ends without such a write.
    pub end: HoldEnd,
}

/// When a hold ends if no write ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HoldEnd {
    /// A command with at least this timestamp may end the hold.
    Lease(Timestamp),
    /// The hold should be over by this time, but only a write ends it.
    Due(Timestamp),
    /// Only a write ends the hold.
    Open,
}

/// The requested end of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HoldTerm {
    /// A lease from the timestamp of the command on.
    Lease {
        /// The duration of the lease.
        seconds: u32,
    },
    /// [`HoldEnd::Due`].
    Due(Timestamp),
    /// [`HoldEnd::Open`].
    Open,
}

impl HoldTerm {
    /// The end of a hold that a command with the timestamp `at` makes or changes.
    pub fn from_now(self, at: Timestamp) -> HoldEnd {
        match self {
            Self::Lease { seconds } => {
                let lease = i64::from(seconds) * 1_000_000;
                HoldEnd::Lease(Timestamp(at.0.saturating_add(lease)))
            }
            Self::Due(due) => HoldEnd::Due(due),
            Self::Open => HoldEnd::Open,
        }
    }
}
