//! Places the variables of a plan on one anchor, depth first, one candidate at a time.

use super::budget::StepBudget;
use super::instance::{Instance, Slot, SlotIndex};
use super::plan::Plan;
use super::sharing::SharingProviders;
use crate::query::tree_filter::drawn;
use crate::state::tree::{Tree, TreeNumber};

/// A search on one instance of the problem, which can be left and taken up again at any time.
#[derive(Default)]
pub(super) struct TreeSearch<'a> {
    pub(super) instance: Instance<'a>,
    /// Variables in the order of being placed: the hardest first, those of one kind together.
    pub(super) order: Vec<usize>,
    levels: Vec<Level>,
    /// How many of [`TreeSearch::order`] are placed.
    pub(super) placed: usize,
    /// For each kind, how many variables are not placed yet.
    pub(super) left: Vec<u64>,
    /// For each slot, how many named variables are on it.
    pub(super) named_on: Vec<u32>,
    /// For each slot, how many variables that take something are on it.
    pub(super) taking_from: Vec<u32>,
    /// For each kind and slot: whether it is known to lead nowhere. Empty until something is.
    nogood: Vec<bool>,
    /// The nogoods (level, kind, slot) in the order in which they were learned. Each is forgotten
    /// when its level is exhausted.
    trail: Vec<(usize, usize, SlotIndex)>,
    solutions: u64,
    /// For each kind, the position in its domain that is tried first.
    first: Vec<usize>,
}

/// One placed variable, or the one to be placed next.
#[derive(Clone, Copy, Default)]
struct Level {
    /// How many of the domain were tried.
    next: usize,
    slot: SlotIndex,
    /// [`TreeSearch::solutions`] when the slot was chosen.
    solutions_before: u64,
}

/// How a search came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// All variables are placed.
    Found,
    /// There is no further way.
    Exhausted,
    /// The watch ended the search.
    Stopped,
}

impl<'a> TreeSearch<'a> {
    /// Begins on another anchor; false if it certainly has no answer.
    pub(super) fn begin(
        &mut self,
        plan: &Plan<'a>,
        sharing: &SharingProviders<'a>,
        (number, tree): (TreeNumber, &'a Tree),
        budget: &mut StepBudget<'_>,
    ) -> bool {
        // Each node is looked at for each kind, and a step is about as many looks.
        if !budget.spend((tree.nodes.len() * plan.kinds.len()) as u64 / 8) {
            return false;
        }
        if !self.instance.lay_out(plan, sharing, number, tree) {
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

    /// Goes on to the next candidate.
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

    /// Puts down the slot of each variable, after [`Step::Found`].
    pub(super) fn solution(&self, slots: &mut Vec<SlotIndex>) {
        slots.clear();
        slots.resize(self.order.len(), 0);
        for (variable, level) in self.order.iter().zip(&self.levels) {
            slots[*variable] = level.slot;
        }
    }

    /// Whether nothing is left to try after the candidate just found.
    pub(super) fn is_last(&self, plan: &Plan<'a>) -> bool {
        let mut levels = self.order.iter().zip(&self.levels);
        levels.all(|(variable, level)| {
            let domain = &self.instance.domains[plan.variables[*variable].kind];
            level.next >= domain.len()
        })
    }

    /// About the memory that keeping it takes; the same whenever it is asked between two turns.
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

    /// Finds a slot for the next variable from where it left off, and places it.
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

    /// The slot that is tried after so many others for a kind.
    fn nth(&self, kind: usize, tried: usize) -> Option<SlotIndex> {
        let domain = &self.instance.domains[kind];
        let (before, from_first) = domain.split_at(self.first[kind]);
        let slot = from_first.get(tried);
        let slot = slot.or_else(|| before.get(tried.checked_sub(from_first.len())?));
        slot.copied()
    }

    /// What looking at all slots for all kinds costs, where there are many.
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

    /// Takes the last placed variable back. If that slot led to nothing, neither would the
    /// slots interchangeable with it, nor any of these for another variable of the kind.
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
