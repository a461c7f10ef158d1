//! Providers form trees (Placement: nested resource providers): each provider is in one tree, once;
//! no parent is below its child; a provider counts all that are below it; the tree is named by its
//! root, which alone has no parent; what is allocated is allocated from an inventory that is there.

use std::collections::BTreeSet;

use placement_model::State;
use placement_model::state::tree::{Tree, TreeNumber};

use super::{Applied, Invariant};

/// Its name in complaints.
pub const NAME: &str = "well-formed trees";

/// See the module.
#[derive(Debug, Default)]
pub struct WellFormedTrees;

impl Invariant for WellFormedTrees {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        check(applied.after)
    }
}

fn check(state: &State) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for (number, tree) in state.trees() {
        shape(number, tree)?;
        for (index, node) in (0_u32..).zip(&tree.nodes) {
            if !seen.insert(node.id) {
                return Err(format!("{} is there twice", node.uuid));
            }
            let place = state.place(&node.uuid);
            if place.map(|place| (place.tree, place.node)) != Some((number, index)) {
                return Err(format!("{} is not found where it is", node.uuid));
            }
        }
    }
    match state.sizes().providers == seen.len() {
        true => Ok(()),
        false => Err(format!(
            "there are {} providers, and {} in trees",
            state.sizes().providers,
            seen.len()
        )),
    }
}

fn shape(number: TreeNumber, tree: &Tree) -> Result<(), String> {
    let root = tree.root();
    if root.id != number.root() || root.parent.is_some() {
        return Err(format!("{} is not the root of its tree", root.uuid));
    }
    for (index, node) in (0_u32..).zip(&tree.nodes).skip(1) {
        // Parents stand before their children, so no way upwards is a circle.
        if node.parent.is_none_or(|parent| parent >= index) {
            return Err(format!("{} does not hang from its tree", node.uuid));
        }
    }
    spans(tree)
}

/// What is below a node follows it directly, and the node says up to where.
fn spans(tree: &Tree) -> Result<(), String> {
    let mut ends: Vec<u32> = (1..).take(tree.nodes.len()).collect();
    for (index, node) in tree.nodes.iter().enumerate().rev() {
        if node.subtree_end != ends[index] {
            return Err(format!("{} does not count those below it", node.uuid));
        }
        if let Some(parent) = node.parent {
            let end = ends[index].max(ends[parent as usize]);
            ends[parent as usize] = end;
        }
    }
    Ok(())
}
