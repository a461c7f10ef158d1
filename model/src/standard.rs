//! The names that all clouds share: resource classes of os-resource-classes 1.1.0 and traits of
//! os-traits 3.9.0. They enter a state only through [`SyncStandards`], so that two versions of the
//! binary agree on the existing names.

use std::str::FromStr;

use crate::command::{Command, SyncStandards};
use crate::state::State;
use crate::types::InvalidName;

/// The standard resource classes, in the order of os-resource-classes, which only appends new
/// classes.
pub fn resource_classes() -> impl Iterator<Item = &'static str> {
    include_str!("standard/resource_classes.txt").lines()
}

/// The standard traits, sorted.
pub fn traits() -> impl Iterator<Item = &'static str> {
    include_str!("standard/traits.txt").lines()
}

impl SyncStandards {
    /// The standard names of this binary.
    pub fn from_this_binary() -> Self {
        Self {
            resource_classes: resource_classes().map(parsed).collect(),
            traits: traits().map(parsed).collect(),
        }
    }

    /// Whether a state has all these names. No command removes a standard name.
    pub fn are_in(&self, state: &State) -> bool {
        let class = |name| state.resource_class_id(name).is_some();
        let known = |name| state.trait_id(name).is_some();
        self.resource_classes.iter().all(class) && self.traits.iter().all(known)
    }
}

fn parsed<N: FromStr<Err = InvalidName>>(name: &str) -> N {
    name.parse().expect("the lists contain only valid names")
}

/// The command that creates all missing standard names of this binary.
pub fn sync() -> Command {
    Command::SyncStandards(SyncStandards::from_this_binary())
}
