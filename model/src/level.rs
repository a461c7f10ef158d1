//! The feature level of a cluster: what all its nodes understand.
//!
//! Nodes of different versions run next to each other during an upgrade, and must decide every
//! entry of the log alike. So whatever a later version adds to what apply decides, to the commands
//! or to what is written waits for a level. [`crate::command::RaiseLevel`] raises it once every
//! member runs a binary that knows it; from its entry on, all of them decide by the new rules. The
//! level never falls: until it is raised, the older version may come back.
//!
//! | level | what waits for it |
//! |---|---|
//! | 1 | nothing: all clusters begin with it |
//! | 2 | the id of the request that a command comes from, in its entry of the log |
//! | 3 | [`FillPartition`](crate::command::FillPartition) |

use std::fmt;

use serde::{Deserialize, Serialize};

/// A feature level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Level(pub u32);

impl Level {
    /// The level of a cluster in which it was never raised.
    pub const FIRST: Self = Self(1);

    /// From this one on, commands have [`request_id`](crate::Stamped::request_id).
    pub const REQUEST_IDS: Self = Self(2);

    /// From this one on, there is [`FillPartition`](crate::command::FillPartition).
    pub const FILLS: Self = Self(3);

    /// The highest level that this binary knows. The feature `rehearsal` makes a binary that is one
    /// ahead, for the test of an upgrade.
    #[cfg(not(feature = "rehearsal"))]
    pub const NEWEST: Self = Self::FILLS;
    /// The highest level that this binary knows.
    #[cfg(feature = "rehearsal")]
    pub const NEWEST: Self = Self::REHEARSED;

    /// What a binary that rehearses an upgrade brings waits for this one.
    #[cfg(feature = "rehearsal")]
    pub const REHEARSED: Self = Self(4);
}

impl Default for Level {
    fn default() -> Self {
        Self::FIRST
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
