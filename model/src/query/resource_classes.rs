//! Lists of resource classes.

use crate::state::State;
use crate::types::{ResourceClassName, Timestamp};

impl State {
    /// The creation time of a class, or `None` if the class does not exist.
    pub fn resource_class(&self, name: &ResourceClassName) -> Option<Timestamp> {
        let id = self.resource_class_id(name)?;
        Some(self.resource_classes.row(id.0)?.updated_at)
    }

    /// All classes with their creation times, in the order of creation, standard classes first.
    pub fn resource_classes(&self) -> Vec<(ResourceClassName, Timestamp)> {
        let rows = self.resource_classes.rows();
        let mut all: Vec<_> = rows
            .map(|(_, row)| (row.name.clone(), row.updated_at))
            .collect();
        all.sort_by_key(|(name, _)| name.is_custom());
        all
    }
}
