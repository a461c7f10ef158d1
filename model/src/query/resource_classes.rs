//! Resource classes.

use crate::state::State;
use crate::types::{ResourceClassName, Timestamp};

impl State {
    /// When the class was made, if it exists.
    pub fn resource_class(&self, name: &ResourceClassName) -> Option<Timestamp> {
        let _ = name;
        None
    }

    /// All classes with the time of their creation, in the order of their creation: standard ones first.
    pub fn resource_classes(&self) -> Vec<(ResourceClassName, Timestamp)> {
        Vec::new()
    }
}
