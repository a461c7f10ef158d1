//! A table of names with dense ids, for resource classes and traits.

use imbl::OrdMap;

use super::change::NameRow;
use crate::types::Given;

/// A bidirectional table of names and ids, with the number of references to each.
#[derive(Clone, PartialEq)]
pub(crate) struct NameTable<N: Ord> {
    rows: OrdMap<u32, NameRow<N>>,
    ids: OrdMap<N, u32>,
    /// Number of references by id. A missing entry means 0.
    uses: OrdMap<u32, u64>,
}

impl<N: Ord> Default for NameTable<N> {
    fn default() -> Self {
        Self {
            rows: OrdMap::new(),
            ids: OrdMap::new(),
            uses: OrdMap::new(),
        }
    }
}

impl<N: Clone + Ord> NameTable<N> {
    pub(crate) fn id(&self, name: &N) -> Option<u32> {
        self.ids.get(name).copied()
    }

    pub(crate) fn given(&self, name: &Given<N>) -> Option<u32> {
        self.id(name.valid()?)
    }

    pub(crate) fn row(&self, id: u32) -> Option<&NameRow<N>> {
        self.rows.get(&id)
    }

    /// Number of rows with a duplicate name.
    pub(crate) fn alike(&self) -> usize {
        self.rows.len() - self.ids.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// All rows, in the order of their ids.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u32, &NameRow<N>)> {
        self.rows.iter().map(|(id, row)| (*id, row))
    }

    /// All rows, sorted by name.
    pub(crate) fn by_name(&self) -> impl Iterator<Item = (u32, &NameRow<N>)> {
        self.ids
            .values()
            .map(|id| (*id, self.rows.get(id).expect("each name has its row")))
    }

    pub(crate) fn uses(&self, id: u32) -> u64 {
        self.uses.get(&id).copied().unwrap_or(0)
    }

    pub(crate) fn put(&mut self, id: u32, row: NameRow<N>) {
        let name = row.name.clone();
        if let Some(old) = self.rows.insert(id, row) {
            self.ids.remove(&old.name);
        }
        self.ids.insert(name, id);
    }

    pub(crate) fn delete(&mut self, id: u32) {
        assert_eq!(self.uses(id), 0, "a deleted name is unused");
        let old = self.rows.remove(&id).expect("a deleted name exists");
        self.ids.remove(&old.name);
    }

    pub(crate) fn add_use(&mut self, id: u32) {
        assert!(
            self.rows.contains_key(&id),
            "a row refers to existing names"
        );
        *self.uses.entry(id).or_insert(0) += 1;
    }

    pub(crate) fn remove_use(&mut self, id: u32) {
        let uses = self.uses.get_mut(&id).expect("every use is counted");
        *uses -= 1;
        if *uses == 0 {
            self.uses.remove(&id);
        }
    }
}
