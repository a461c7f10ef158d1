//! The feature level of a cluster: the features that all its nodes support.
//!
//! Nodes of different versions run side by side during an upgrade, and must apply every log entry
//! with the same result. A change to the rules, the commands or the format of rows therefore
//! requires a level. [`crate::command::RaiseLevel`] raises the level once every member runs a
//! binary that supports it; from its log entry on, all nodes apply the new rules. The level never
//! falls. Until it is raised, a downgrade is possible.
//!
//! | level | feature |
//! |---|---|
//! | 1 | none: the initial level of every cluster |
//!
//! Before the first release, all features belong to level 1.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of a feature level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Level(pub u32);

impl Level {
    /// The initial level of a cluster.
    pub const FIRST: Self = Self(1);

    /// The highest level that this binary supports. The feature `rehearsal` builds a binary that is
    /// one level ahead, to test an upgrade.
    #[cfg(not(feature = "rehearsal"))]
    pub const NEWEST: Self = Self::FIRST;
    /// The highest level that this binary supports.
    #[cfg(feature = "rehearsal")]
    pub const NEWEST: Self = Self::REHEARSED;

    /// The level of the features in a binary that rehearses an upgrade.
    #[cfg(feature = "rehearsal")]
    pub const REHEARSED: Self = Self(2);
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
