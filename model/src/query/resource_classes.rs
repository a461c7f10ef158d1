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
        let rows = self.resource_classes.rows();
        let mut all: Vec<_> = rows
            .map(|(_, row)| (row.name.clone(), row.updated_at))
            .collect();
        all.sort_by_key(|(name, _)| name.is_custom());
        all
    }
}
