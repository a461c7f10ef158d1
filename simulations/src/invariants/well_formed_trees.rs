//! Providers form trees (Placement: nested resource providers): each provider is in exactly one
//! tree; no parent is below its child; a provider counts its descendants; a tree is identified by
//! its root, the only node without a parent.

use std::collections::BTreeSet;

use placement_model::State;
use placement_model::state::tree::{Tree, TreeNumber};

use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "well-formed trees";

/// Checks all trees after each command.
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
                return Err(format!("{} occurs twice", node.uuid));
            }
            let place = state.place(&node.uuid);
            if place.map(|place| (place.tree, place.node)) != Some((number, index)) {
                return Err(format!("{} is not found at its place", node.uuid));
            }
        }
    }
    if state.sizes().providers == seen.len() {
        Ok(())
    } else {
        Err(format!(
            "there are {} providers, and {} in trees",
            state.sizes().providers,
            seen.len()
        ))
    }
}

fn shape(number: TreeNumber, tree: &Tree) -> Result<(), String> {
    let root = tree.root();
    if root.id != number.root() || root.parent.is_some() {
        return Err(format!("{} is not the root of its tree", root.uuid));
    }
    for (index, node) in (0_u32..).zip(&tree.nodes).skip(1) {
        // Parents precede their children, so there are no cycles.
        if node.parent.is_none_or(|parent| parent >= index) {
            return Err(format!("{} has no parent in its tree", node.uuid));
        }
    }
    spans(tree)
}

/// The descendants of a node follow it directly, and the node stores where they end.
fn spans(tree: &Tree) -> Result<(), String> {
    let mut ends: Vec<u32> = (1..).take(tree.nodes.len()).collect();
    for (index, node) in tree.nodes.iter().enumerate().rev() {
        if node.subtree_end != ends[index] {
            return Err(format!(
                "the subtree of {} ends at the wrong node",
                node.uuid
            ));
        }
        if let Some(parent) = node.parent {
            let end = ends[index].max(ends[parent as usize]);
            ends[parent as usize] = end;
        }
    }
    Ok(())
}
