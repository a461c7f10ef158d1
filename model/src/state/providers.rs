//! Providers, which are stored as nodes of their trees, and the maps to find them.

use std::iter::Peekable;
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::RangedIter;
use imbl::shared_ptr::DefaultSharedPtr;

use super::change::{ProviderId, ProviderRow};
use super::dense::dense;
use super::tree::{Node, NodePlace, Tree, TreeNumber};
use crate::mutant;
use crate::types::{ProviderName, ProviderUuid};

type Trees = OrdMap<TreeNumber, Arc<Tree>>;

/// The provider trees; the other fields are derived from them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Providers {
    pub(crate) trees: Trees,
    places: OrdMap<ProviderId, NodePlace>,
    by_uuid: OrdMap<ProviderUuid, ProviderId>,
    by_name: OrdMap<ProviderName, ProviderId>,
}

/// Finds trees. If the numbers are ascending and close together, this costs a fraction of separate
/// lookups.
pub(crate) struct TreeCursor<'a> {
    trees: &'a Trees,
    ahead: Peekable<RangedIter<'a, TreeNumber, Arc<Tree>, DefaultSharedPtr>>,
}

/// Number of trees to skip before falling back to a lookup. Skipping a tree costs a tenth of a
/// lookup.
const PASSED_MAX: usize = 8;

impl<'a> TreeCursor<'a> {
    pub(crate) fn find(&mut self, number: TreeNumber) -> Option<&'a Arc<Tree>> {
        for _ in 0..PASSED_MAX {
            if self.ahead.next_if(|(at, _)| **at < number).is_none() {
                break;
            }
        }
        if self.ahead.peek().is_none_or(|(at, _)| **at != number) {
            self.ahead = self.trees.range(number..).peekable();
        }
        let found = self.ahead.peek().filter(|(at, _)| **at == number);
        found.map(|(_, tree)| *tree)
    }
}

impl Providers {
    /// Builds the maps from trees in the order of their numbers.
    pub(crate) fn from_trees(trees: Vec<(TreeNumber, Arc<Tree>)>) -> Self {
        let mut places = Vec::new();
        let mut by_uuid = Vec::new();
        let mut by_name = Vec::new();
        for (number, tree) in &trees {
            for (index, node) in (0_u32..).zip(&tree.nodes) {
                places.push((node.id, number.node(index)));
                by_uuid.push((node.uuid, node.id));
                by_name.push((node.name.clone(), node.id));
            }
        }
        places.sort_unstable();
        by_uuid.sort_unstable();
        by_name.sort_unstable();
        Self {
            trees: dense(trees).collect(),
            places: dense(places).collect(),
            by_uuid: dense(by_uuid).collect(),
            by_name: dense(by_name).collect(),
        }
    }

    /// Number of duplicate names and UUIDs.
    pub(crate) fn alike(&self) -> usize {
        2 * self.places.len() - self.by_uuid.len() - self.by_name.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn place(&self, id: ProviderId) -> Option<NodePlace> {
        self.places.get(&id).copied()
    }

    pub(crate) fn id_of_uuid(&self, uuid: &ProviderUuid) -> Option<ProviderId> {
        self.by_uuid.get(uuid).copied()
    }

    pub(crate) fn id_of_name(&self, name: &ProviderName) -> Option<ProviderId> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn node(&self, place: NodePlace) -> &Arc<Node> {
        &self.trees[&place.tree].nodes[place.node as usize]
    }

    pub(crate) fn tree_cursor(&self) -> TreeCursor<'_> {
        TreeCursor {
            trees: &self.trees,
            ahead: self.trees.range::<_, TreeNumber>(..).peekable(),
        }
    }

    pub(crate) fn row(&self, place: NodePlace) -> ProviderRow {
        self.trees[&place.tree].row(place.node)
    }

    /// Every id in the order of creation, with its place.
    pub(crate) fn places(&self) -> impl Iterator<Item = (ProviderId, NodePlace)> {
        self.places.iter().map(|(id, place)| (*id, *place))
    }

    /// Inserts a new provider, as a root or below an existing parent.
    pub(crate) fn insert(&mut self, id: ProviderId, row: &ProviderRow) {
        self.by_uuid.insert(row.uuid, id);
        self.by_name.insert(row.name.clone(), id);
        self.hang(Tree::single(id, row), row.parent);
    }

    /// Removes a provider without children, and its tree if that becomes empty.
    pub(crate) fn remove(&mut self, place: NodePlace) {
        let node = Arc::clone(self.node(place));
        assert_eq!(
            node.subtree_end,
            place.node + 1,
            "a deleted provider has no children"
        );
        assert!(
            node.inventories.is_empty() && node.traits.is_empty() && node.aggregates.is_empty(),
            "inventories, traits and aggregates are deleted before their provider"
        );
        self.by_uuid.remove(&node.uuid);
        self.by_name.remove(&node.name);
        self.places.remove(&node.id);
        self.cut(place);
    }

    /// Changes the name of a provider.
    pub(crate) fn rename(&mut self, id: ProviderId, old: &ProviderName, new: ProviderName) {
        let of_old = self.by_name.remove(old);
        assert_eq!(of_old, Some(id), "a name belongs to one provider");
        if mutant!("name-stays-found") {
            self.by_name.insert(old.clone(), id);
        }
        let of_new = self.by_name.insert(new, id);
        assert_eq!(of_new, None, "a name belongs to one provider");
    }

    /// Moves a provider with its descendants to another parent, or makes it a root.
    pub(crate) fn hang_elsewhere(&mut self, place: NodePlace, parent: Option<ProviderId>) {
        let branch = self.cut(place);
        self.hang(branch, parent);
    }

    /// A mutable tree. Its nodes remain shared.
    pub(crate) fn tree_mut(&mut self, place: NodePlace) -> &mut Tree {
        let tree = self.trees.get_mut(&place.tree);
        Arc::make_mut(tree.expect("a place names a tree that exists"))
    }

    fn cut(&mut self, place: NodePlace) -> Tree {
        if place.node == 0 {
            let tree = self.trees.remove(&place.tree);
            return Arc::unwrap_or_clone(tree.expect("a place names a tree that exists"));
        }
        let branch = self.tree_mut(place).detach(place.node);
        self.note_places(place.tree, place.node);
        branch
    }

    fn hang(&mut self, branch: Tree, parent: Option<ProviderId>) {
        match parent {
            Some(parent) => {
                let parent = self.place(parent);
                let parent = parent.expect("a parent exists before its child");
                let at = self.tree_mut(parent).attach(parent.node, branch);
                self.note_places(parent.tree, at);
            }
            None => {
                let number = TreeNumber(branch.root().id.0);
                self.trees.insert(number, Arc::new(branch));
                self.note_places(number, 0);
            }
        }
    }

    /// Updates the places of a tree's nodes at index `from` and above.
    fn note_places(&mut self, number: TreeNumber, from: u32) {
        let tree = Arc::clone(&self.trees[&number]);
        for (node, index) in tree.nodes[from as usize..].iter().zip(from..) {
            self.places.insert(node.id, number.node(index));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;
    use crate::state::change::ProviderRow;
    use crate::types::{Generation, Timestamp};

    fn tree(number: u32) -> (TreeNumber, Arc<Tree>) {
        let id = ProviderId(number);
        let row = ProviderRow {
            uuid: ProviderUuid(uuid::Uuid::from_u128(u128::from(number))),
            name: ProviderName::try_from(number.to_string()).unwrap(),
            generation: Generation(0),
            parent: None,
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
        };
        (TreeNumber(number), Arc::new(Tree::single(id, &row)))
    }

    proptest! {
        #[test]
        fn cursor_agrees_with_lookup_in_any_order(
            numbers in btree_set(0..400_u32, 0..200),
            rising in btree_set(0..410_u32, 0..200),
            any_order in vec(0..410_u32, 0..20),
        ) {
            let trees = Providers::from_trees(numbers.into_iter().map(tree).collect());
            let mut cursor = trees.tree_cursor();
            for number in rising.iter().chain(&any_order).chain(&rising) {
                let number = TreeNumber(*number);
                prop_assert_eq!(cursor.find(number), trees.trees.get(&number));
            }
        }
    }
}
