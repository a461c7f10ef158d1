//! Resource classes.

use crate::state::State;
use crate::types::{ResourceClassName, Timestamp};

impl State {
    /// When the class was made, if it exists.
    pub fn resource_class(&self, name: &ResourceClassName) -> Option<Timestamp> {
        let id = self.resource_class_id(name)?;
        Some(self.resource_classes.row(id.0)?.updated_at)
    }

    /// All classes with the time of their creation, in the order of their creation, standard ones
    /// first.
    pub fn resource_classes(&self) -> Vec<(ResourceClassName, Timestamp)> {
        let all = || {
            self.resource_classes
                .rows()
                .map(|(_, row)| (row.name.clone(), row.updated_at))
        };
        let standard = all().filter(|(name, _)| !name.is_custom());
        standard
            .chain(all().filter(|(name, _)| name.is_custom()))
            .collect()
    }
}
