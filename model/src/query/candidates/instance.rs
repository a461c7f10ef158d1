//! One anchor laid out for the search: its providers, and those that share with it, that could
//! serve something.

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

/// Providers and what each of them could serve. Kept and filled again for the next anchor, so that
/// opening a small tree costs no allocation.
#[derive(Default)]
pub(super) struct Instance<'a> {
    pub(super) anchor: Option<(TreeNumber, &'a Tree)>,
    /// In the order of their creation.
    pub(super) slots: Vec<Slot<'a>>,
    /// For each kind, the slots that could serve it, rising.
    pub(super) domains: Vec<Vec<SlotIndex>>,
    /// For each slot and class, how much may still be taken.
    pub(super) room: Vec<u64>,
    /// For each slot and set of traits, whether the provider has one of them.
    pub(super) covers: Vec<bool>,
    /// The same domains in the order of trees and nodes, for the kinds that a `same_subtree`
    /// watches: what lies below a provider stands together there.
    by_place: Vec<Vec<SlotIndex>>,
    found: Vec<Found>,
    kinds: Vec<usize>,
}

/// A provider.
#[derive(Clone, Copy)]
pub(super) struct Slot<'a> {
    pub(super) seat: Seat<'a>,
    /// It may serve other trees too.
    pub(super) shares: bool,
    /// It is in another tree than the anchor's.
    pub(super) outside: bool,
}

/// A provider that could serve some kinds.
struct Found {
    id: ProviderId,
    slot: usize,
    /// Indexes into [`Instance::kinds`].
    kinds: Range<usize>,
}

impl<'a> Instance<'a> {
    /// Lays out an anchor; false if some kind cannot be served at all.
    pub(super) fn lay_out(
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
        self.found.push(Found {
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

    /// Puts the slots in order and fills in what depends on their numbers.
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

    /// Slots that could serve a kind and lie in the subtree that another slot heads.
    pub(super) fn below(&self, head: SlotIndex, kind: usize) -> &[SlotIndex] {
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

    /// Whether a slot lies in the subtree that another heads.
    pub(super) fn heads(&self, head: SlotIndex, slot: SlotIndex) -> bool {
        let (head, slot) = (&self.slots[head as usize].seat, self.place(slot));
        head.place.tree == slot.tree
            && (head.place.node..head.node.subtree_end).contains(&slot.node)
    }
}
