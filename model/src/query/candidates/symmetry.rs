//! Interchangeable slots: if one of them leads to a dead end, so do the others.

use std::collections::BTreeMap;

use super::instance::SlotIndex;
use super::plan::Plan;
use super::tree_search::TreeSearch;

/// All properties of a slot that matter to the variables still to be placed.
type Label = Vec<u64>;

impl<'a> TreeSearch<'a> {
    /// The slot and the interchangeable slots in the domain of the kind.
    pub(super) fn interchangeable(
        &self,
        plan: &Plan<'a>,
        kind: usize,
        slot: SlotIndex,
    ) -> Vec<SlotIndex> {
        let domain = &self.instance.domains[kind];
        if domain.len() == 1 {
            return vec![slot];
        }
        let others = domain.iter().copied();
        if plan.subtrees.is_empty() {
            let label = self.label(plan, slot);
            let alike = |other: &SlotIndex| *other == slot || self.label(plan, *other) == label;
            return others.filter(alike).collect();
        }
        let orbits = self.orbits(plan);
        let orbit = orbits.get(&slot);
        let alike =
            |other: &SlotIndex| *other == slot || (orbit.is_some() && orbits.get(other) == orbit);
        others.filter(alike).collect()
    }

    fn label(&self, plan: &Plan<'a>, slot: SlotIndex) -> Label {
        let index = slot as usize;
        let (classes, sets) = (plan.classes.len(), plan.trait_sets.len());
        let mut label = self.instance.room[index * classes..(index + 1) * classes].to_vec();
        let covers = &self.instance.covers[index * sets..(index + 1) * sets];
        label.extend(covers.iter().map(|covers| u64::from(*covers)));
        label.extend((0..plan.kinds.len()).map(|kind| {
            let domain = &self.instance.domains[kind];
            u64::from(self.left[kind] > 0 && domain.binary_search(&slot).is_ok())
        }));
        if plan.isolate {
            label.push(u64::from(self.named_on[index]));
        }
        if plan.one_per_tree {
            label.push(u64::from(self.instance.place(slot).tree.0));
            label.push(u64::from(self.taking_from[index]));
        }
        label
    }

    /// Numbers the slots so that interchangeable slots have equal numbers, for plans in which the
    /// shape of the tree matters. There, two slots are interchangeable if a symmetry of the tree
    /// and its placements maps one to the other: their subtrees are equal and their parents are
    /// interchangeable. Slots outside the anchor's tree get no number, as if they had no symmetry.
    fn orbits(&self, plan: &Plan<'a>) -> BTreeMap<SlotIndex, u64> {
        let Some((_, tree)) = self.instance.anchor else {
            return BTreeMap::new();
        };
        let mut labels: Vec<(Option<SlotIndex>, Label)> =
            vec![(None, Vec::new()); tree.nodes.len()];
        for (slot, index) in self.instance.slots.iter().zip(0..) {
            if !slot.outside {
                labels[slot.seat.place.node as usize] =
                    (Some(index), self.placed_label(plan, index));
            }
        }
        let shapes = shapes(&labels, |node| {
            tree.nodes[node].parent.map(|parent| parent as usize)
        });
        let mut known: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut orbits: Vec<u64> = Vec::with_capacity(labels.len());
        for (node, shape) in tree.nodes.iter().zip(shapes) {
            let parent = node
                .parent
                .map_or(u64::MAX, |parent| orbits[parent as usize]);
            let fresh = known.len() as u64;
            orbits.push(*known.entry((parent, shape)).or_insert(fresh));
        }
        let slots = labels.iter().zip(orbits);
        slots
            .filter_map(|((slot, _), orbit)| Some(((*slot)?, orbit)))
            .collect()
    }

    /// The label, followed by the kinds in a `same_subtree` that are placed on the slot.
    fn placed_label(&self, plan: &Plan<'a>, slot: SlotIndex) -> Label {
        let mut kinds: Vec<u64> = self
            .placements(plan)
            .filter(|(kind, at)| *at == slot && !plan.kinds[*kind].subtrees.is_empty())
            .map(|(kind, _)| kind as u64)
            .collect();
        kinds.sort_unstable();
        let mut label = self.label(plan, slot);
        label.append(&mut kinds);
        label
    }
}

/// Numbers the subtrees so that equal numbers mean equal shapes with equal labels. Nodes are in
/// preorder.
fn shapes(
    labels: &[(Option<SlotIndex>, Label)],
    parent: impl Fn(usize) -> Option<usize>,
) -> Vec<u64> {
    let mut known: BTreeMap<(bool, &Label, Vec<u64>), u64> = BTreeMap::new();
    let mut children: Vec<Vec<u64>> = vec![Vec::new(); labels.len()];
    let mut shapes = vec![0; labels.len()];
    for node in (0..labels.len()).rev() {
        let mut below = std::mem::take(&mut children[node]);
        below.sort_unstable();
        let (slot, label) = &labels[node];
        let fresh = known.len() as u64;
        shapes[node] = *known.entry((slot.is_some(), label, below)).or_insert(fresh);
        if let Some(parent) = parent(node) {
            children[parent].push(shapes[node]);
        }
    }
    shapes
}
