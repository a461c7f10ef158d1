//! Indexes over tree numbers: which trees are worth opening for a search.

use super::tree::{Tree, TreeNumber};

/// Filters, never proofs: a tree that an index names may still turn out not to serve.
#[derive(Debug, Clone, Default)]
pub struct Indexes {}

impl Indexes {
    /// Takes a changed tree in. Called once per changed tree and commit; `old` is `None` for a
    /// new tree, `new` for one that is gone (deleted, or moved below another root). Nodes that
    /// did not change are the same `Arc` in both.
    pub(crate) fn replace_tree(
        &mut self,
        number: TreeNumber,
        old: Option<&Tree>,
        new: Option<&Tree>,
    ) {
        let _ = (number, old, new);
    }
}
