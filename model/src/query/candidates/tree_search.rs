//! Places the variables of a plan on one anchor, depth first, one candidate at a time.

use super::budget::StepBudget;
use super::instance::{Instance, Slot, SlotIndex};
use super::plan::Plan;
use super::sharing::SharingProviders;
use crate::query::tree_filter::drawn;
use crate::state::tree::{Tree, TreeNumber};

/// A search on one [`Instance`], which can be suspended and resumed at any time.
#[derive(Default)]
pub(super) struct TreeSearch<'a> {
    pub(super) instance: Instance<'a>,
    /// Variables in the order of placement: the hardest first, and variables of one kind together.
    pub(super) order: Vec<usize>,
    levels: Vec<Level>,
    /// Number of placed variables of [`TreeSearch::order`].
    pub(super) placed: usize,
    /// For each kind, the number of variables that are not placed yet.
    pub(super) left: Vec<u64>,
    /// For each slot, the number of named variables on it.
    pub(super) named_on: Vec<u32>,
    /// For each slot, the number of variables with demands on it.
    pub(super) taking_from: Vec<u32>,
    /// For each kind and slot, whether the placement is a known dead end. Empty until the first one
    /// is learned.
    nogood: Vec<bool>,
    /// The nogoods (level, kind, slot) in the order of learning. A nogood is removed when its level
    /// is exhausted.
    trail: Vec<(usize, usize, SlotIndex)>,
    solutions: u64,
    /// For each kind, the position in its domain to try first.
    first: Vec<usize>,
}

/// A placed variable, or the next one to place.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Number of slots of the domain already tried.
    next: usize,
    slot: SlotIndex,
    /// [`TreeSearch::solutions`] when the slot was chosen.
    solutions_before: u64,
}

/// The result of a search step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// All variables are placed.
    Found,
    /// No further placement exists.
    Exhausted,
    /// The watch stopped the search.
    Stopped,
}

impl<'a> TreeSearch<'a> {
    /// Begins with another anchor; returns false if it certainly has no candidate.
    pub(super) fn begin(
        &mut self,
        plan: &Plan<'a>,
        sharing: &SharingProviders<'a>,
        (number, tree): (TreeNumber, &'a Tree),
        budget: &mut StepBudget<'_>,
    ) -> bool {
        // Each node is tested for each kind; a step covers about eight tests.
        if !budget.spend((tree.nodes.len() * plan.kinds.len()) as u64 / 8) {
            return false;
        }
        if !self.instance.prepare_anchor(plan, sharing, number, tree) {
            return false;
        }
        self.order.clear();
        self.order.extend(0..plan.variables.len());
        let domains = &self.instance.domains;
        self.order.sort_by_key(|variable| {
            let kind = plan.variables[*variable].kind;
            (domains[kind].len(), kind)
        });
        self.levels.clear();
        self.levels.resize(self.order.len(), Level::default());
        self.placed = 0;
        self.left.clear();
        self.left.extend(plan.kinds.iter().map(|kind| kind.count));
        refill(&mut self.named_on, self.instance.slots.len());
        refill(&mut self.taking_from, self.instance.slots.len());
        self.nogood.clear();
        self.trail.clear();
        self.solutions = 0;
        self.first.clear();
        self.first
            .extend((0..).zip(&self.instance.domains).map(|(kind, domain)| {
                plan.seed.map_or(0, |seed| {
                    let of_this = seed ^ (u64::from(number.0) << 32);
                    drawn(of_this, kind, domain.len() as u32) as usize
                })
            }));
        if plan.independent {
            return true;
        }
        budget.spend(self.look_steps(plan)) && self.is_feasible(plan)
    }

    /// Advances to the next candidate.
    pub(super) fn next(&mut self, plan: &Plan<'a>, budget: &mut StepBudget<'_>) -> Step {
        loop {
            if !budget.spend(1) {
                return Step::Stopped;
            }
            if self.placed == self.order.len() {
                self.take_back(plan, budget);
            }
            let level = self.placed;
            if self.place_next(plan, budget) {
                if self.placed == self.order.len() {
                    self.solutions += 1;
                    return Step::Found;
                }
            } else {
                self.levels[level].next = 0;
                self.forget_nogoods(level);
                if level == 0 {
                    return Step::Exhausted;
                }
                self.take_back(plan, budget);
            }
        }
    }

    /// Writes the slot of each variable to `slots`, after [`Step::Found`].
    pub(super) fn solution(&self, slots: &mut Vec<SlotIndex>) {
        slots.clear();
        slots.resize(self.order.len(), 0);
        for (variable, level) in self.order.iter().zip(&self.levels) {
            slots[*variable] = level.slot;
        }
    }

    /// Whether the candidate just found is the last one.
    pub(super) fn is_last(&self, plan: &Plan<'a>) -> bool {
        let mut levels = self.order.iter().zip(&self.levels);
        levels.all(|(variable, level)| {
            let domain = &self.instance.domains[plan.variables[*variable].kind];
            level.next >= domain.len()
        })
    }

    /// Estimated memory use in bytes; constant while the search is suspended.
    pub(super) fn bytes(&self) -> usize {
        let slots = self.instance.slots.len();
        let counts = self.named_on.len() + self.taking_from.len();
        size_of::<Self>()
            + slots * size_of::<Slot<'_>>()
            + self.instance.domains.iter().map(Vec::len).sum::<usize>() * 16
            + self.instance.room.len() * size_of::<u64>()
            + counts * size_of::<u32>()
            + self.levels.len() * (size_of::<Level>() + size_of::<usize>())
            + self.nogood.len() * 2
    }

    /// The kind and slot of each placed variable.
    pub(super) fn placements<'s>(
        &'s self,
        plan: &'s Plan<'a>,
    ) -> impl Iterator<Item = (usize, SlotIndex)> + 's {
        self.order[..self.placed]
            .iter()
            .zip(&self.levels)
            .map(|(variable, level)| (plan.variables[*variable].kind, level.slot))
    }

    /// Places the next variable, continuing after the last slot tried.
    fn place_next(&mut self, plan: &Plan<'a>, budget: &mut StepBudget<'_>) -> bool {
        let level = self.placed;
        let kind = plan.variables[self.order[level]].kind;
        while let Some(slot) = self.nth(kind, self.levels[level].next) {
            self.levels[level].next += 1;
            if plan.independent {
                self.choose(plan, kind, slot);
                return true;
            }
            if !budget.spend(1 + self.look_steps(plan)) {
                return false;
            }
            if self.is_nogood(kind, slot) || self.fits(plan, kind, slot) == 0 {
                continue;
            }
            self.choose(plan, kind, slot);
            if self.is_feasible(plan) {
                return true;
            }
            self.unchoose(plan, kind, slot);
            self.learn_nogood(level, kind, slot);
        }
        false
    }

    /// The slot to try for a kind after `tried` others.
    fn nth(&self, kind: usize, tried: usize) -> Option<SlotIndex> {
        let domain = &self.instance.domains[kind];
        let (before, from_first) = domain.split_at(self.first[kind]);
        let slot = from_first
            .get(tried)
            .or_else(|| before.get(tried.checked_sub(from_first.len())?));
        slot.copied()
    }

    /// Cost in steps of checking all slots for all kinds, which matters for large instances.
    fn look_steps(&self, plan: &Plan<'a>) -> u64 {
        let slots = self.instance.slots.len() as u64;
        slots / 64 + slots * plan.kinds.len() as u64 / 1024
    }

    fn choose(&mut self, plan: &Plan<'a>, kind: usize, slot: SlotIndex) {
        self.levels[self.placed].slot = slot;
        self.levels[self.placed].solutions_before = self.solutions;
        self.placed += 1;
        self.left[kind] -= 1;
        let kind = &plan.kinds[kind];
        for demand in &kind.demands {
            self.instance.room[slot as usize * plan.classes.len() + demand.class] -= demand.amount;
        }
        self.named_on[slot as usize] += u32::from(kind.named);
        self.taking_from[slot as usize] += u32::from(!kind.demands.is_empty());
    }

    fn unchoose(&mut self, plan: &Plan<'a>, kind: usize, slot: SlotIndex) {
        self.placed -= 1;
        self.left[kind] += 1;
        let kind = &plan.kinds[kind];
        for demand in &kind.demands {
            self.instance.room[slot as usize * plan.classes.len() + demand.class] += demand.amount;
        }
        self.named_on[slot as usize] -= u32::from(kind.named);
        self.taking_from[slot as usize] -= u32::from(!kind.demands.is_empty());
    }

    /// Removes the last placed variable. If its slot was a dead end, so are the interchangeable
    /// slots, for every variable of the kind.
    fn take_back(&mut self, plan: &Plan<'a>, budget: &mut StepBudget<'_>) {
        let level = self.placed - 1;
        let kind = plan.variables[self.order[level]].kind;
        let Level {
            slot,
            solutions_before,
            ..
        } = self.levels[level];
        self.unchoose(plan, kind, slot);
        if self.solutions == solutions_before {
            budget.spend(self.instance.slots.len() as u64 / 8);
            for slot in self.interchangeable(plan, kind, slot) {
                self.learn_nogood(level, kind, slot);
            }
        }
    }

    pub(super) fn is_nogood(&self, kind: usize, slot: SlotIndex) -> bool {
        !self.nogood.is_empty() && self.nogood[kind * self.instance.slots.len() + slot as usize]
    }

    fn learn_nogood(&mut self, level: usize, kind: usize, slot: SlotIndex) {
        let slots = self.instance.slots.len();
        if self.nogood.is_empty() {
            self.nogood
                .resize(self.instance.domains.len() * slots, false);
        }
        let nogood = &mut self.nogood[kind * slots + slot as usize];
        if !*nogood {
            *nogood = true;
            self.trail.push((level, kind, slot));
        }
    }

    fn forget_nogoods(&mut self, level: usize) {
        let slots = self.instance.slots.len();
        while let Some((_, kind, slot)) = self.trail.pop_if(|(at, _, _)| *at >= level) {
            self.nogood[kind * slots + slot as usize] = false;
        }
    }
}

fn refill(counts: &mut Vec<u32>, len: usize) {
    counts.clear();
    counts.resize(len, 0);
}
