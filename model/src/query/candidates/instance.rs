//! One anchor prepared for the search: the providers of its tree, and the sharing providers, that
//! could serve some kind.

use std::ops::Range;

use super::answer::Seat;
use super::plan::{Plan, has_any};
use super::sharing::SharingProviders;
use crate::state::NodePlace;
use crate::state::change::ProviderId;
use crate::state::indexes::offer;
use crate::state::tree::{Tree, TreeNumber};

/// Index into [`Instance::slots`].
pub(super) type SlotIndex = u32;

/// Providers and the kinds that each of them could serve. The memory is reused for the next anchor,
/// so that preparing a small tree allocates nothing.
#[derive(Default)]
pub(super) struct Instance<'a> {
    pub(super) anchor: Option<(TreeNumber, &'a Tree)>,
    /// The providers in the order of their creation.
    pub(super) slots: Vec<Slot<'a>>,
    /// For each kind, the slots that could serve it, in ascending order.
    pub(super) domains: Vec<Vec<SlotIndex>>,
    /// For each slot and class, the remaining units.
    pub(super) room: Vec<u64>,
    /// For each slot and trait set, whether the provider has a trait of the set.
    pub(super) covers: Vec<bool>,
    /// The domains sorted by tree and node, for the kinds in a `same_subtree`, so that the slots of
    /// a subtree are contiguous.
    by_place: Vec<Vec<SlotIndex>>,
    found: Vec<ServingProvider>,
    kinds: Vec<usize>,
}

/// A provider of the instance.
#[derive(Clone, Copy)]
pub(super) struct Slot<'a> {
    pub(super) seat: Seat<'a>,
    /// Whether the provider shares, so that it may also serve other trees.
    pub(super) shares: bool,
    /// Whether the provider belongs to another tree than the anchor.
    pub(super) outside: bool,
}

/// A provider that could serve some kinds.
struct ServingProvider {
    id: ProviderId,
    slot: usize,
    /// Indexes into [`Instance::kinds`].
    kinds: Range<usize>,
}

impl<'a> Instance<'a> {
    /// Prepares an anchor; returns false if some kind has no possible provider.
    pub(super) fn prepare_anchor(
        &mut self,
        plan: &Plan<'a>,
        sharing: &SharingProviders<'a>,
        number: TreeNumber,
        tree: &'a Tree,
    ) -> bool {
        self.clear(plan);
        self.anchor = Some((number, tree));
        for (node, index) in tree.nodes.iter().zip(0..) {
            let from = self.kinds.len();
            let serves =
                |kind: &usize| plan.serves(&plan.kinds[*kind], number, &tree.nodes[0], node);
            self.kinds.extend((0..plan.kinds.len()).filter(serves));
            if self.kinds.len() == from {
                continue;
            }
            let place = number.node(index);
            let seat = Seat { place, node, tree };
            self.add_slot(from, seat, sharing.shares(node), false);
        }
        for provider in sharing.reaching(number, tree) {
            let from = self.kinds.len();
            self.kinds.extend_from_slice(&provider.serves);
            self.add_slot(from, provider.seat, true, true);
        }
        self.fill(plan)
    }

    fn clear(&mut self, plan: &Plan<'a>) {
        self.anchor = None;
        self.slots.clear();
        self.room.clear();
        self.covers.clear();
        self.found.clear();
        self.kinds.clear();
        self.domains.resize_with(plan.kinds.len(), Vec::new);
        self.domains.iter_mut().for_each(Vec::clear);
    }

    fn add_slot(&mut self, from: usize, seat: Seat<'a>, shares: bool, outside: bool) {
        self.found.push(ServingProvider {
            id: seat.node.id,
            slot: self.slots.len(),
            kinds: from..self.kinds.len(),
        });
        self.slots.push(Slot {
            seat,
            shares,
            outside,
        });
    }

    /// Sorts the slots and fills the fields that depend on their indexes.
    fn fill(&mut self, plan: &Plan<'a>) -> bool {
        if !self.found.is_sorted_by_key(|found| found.id) {
            self.found.sort_unstable_by_key(|found| found.id);
            let unsorted = self.slots.clone();
            self.slots.clear();
            self.slots
                .extend(self.found.iter().map(|found| unsorted[found.slot]));
        }
        for (found, slot) in self.found.iter().zip(0..) {
            for kind in &self.kinds[found.kinds.clone()] {
                self.domains[*kind].push(slot);
            }
        }
        if self.domains.iter().any(Vec::is_empty) {
            return false;
        }
        if !plan.subtrees.is_empty() {
            self.sort_by_place(plan);
        }
        for slot in &self.slots {
            for class in &plan.classes {
                self.room
                    .push(slot.seat.node.stock(*class).map_or(0, offer));
            }
            self.covers.extend(
                plan.trait_sets
                    .iter()
                    .map(|any| has_any(slot.seat.node, any)),
            );
        }
        true
    }

    fn sort_by_place(&mut self, plan: &Plan<'a>) {
        let watched = |kind: usize| !plan.kinds[kind].subtrees.is_empty();
        let sorted = (0..plan.kinds.len()).map(|kind| {
            let domain = self.domains[kind].iter().filter(|_| watched(kind));
            let mut slots: Vec<_> = domain.copied().collect();
            slots.sort_unstable_by_key(|slot| self.place(*slot));
            slots
        });
        self.by_place = sorted.collect();
    }

    /// The slots that could serve a kind within the subtree of `head`.
    pub(super) fn slots_below(&self, head: SlotIndex, kind: usize) -> &[SlotIndex] {
        let head = &self.slots[head as usize].seat;
        let sorted = &self.by_place[kind];
        let until = |node: u32| {
            let end = head.place.tree.node(node);
            sorted.partition_point(|slot| self.place(*slot) < end)
        };
        &sorted[until(head.place.node)..until(head.node.subtree_end)]
    }

    pub(super) fn place(&self, slot: SlotIndex) -> NodePlace {
        self.slots[slot as usize].seat.place
    }

    /// Whether `slot` lies in the subtree of `head`.
    pub(super) fn heads(&self, head: SlotIndex, slot: SlotIndex) -> bool {
        let (head, slot) = (&self.slots[head as usize].seat, self.place(slot));
        head.place.tree == slot.tree
            && (head.place.node..head.node.subtree_end).contains(&slot.node)
    }
}
