//! Checks by counting, without search, whether the remaining variables can still be placed.

use super::instance::SlotIndex;
use super::plan::{ContendedClass, Plan};
use super::tree_search::TreeSearch;

impl<'a> TreeSearch<'a> {
    /// Returns false if the remaining variables certainly cannot all be placed. True does not
    /// guarantee that they can.
    pub(super) fn is_feasible(&self, plan: &Plan<'a>) -> bool {
        self.rooms_suffice(plan) && self.subtrees_feasible(plan) && self.traits_coverable(plan)
    }

    /// Number of further variables of a kind that this slot can take.
    pub(super) fn fits(&self, plan: &Plan<'a>, kind: usize, slot: SlotIndex) -> u64 {
        let kind = &plan.kinds[kind];
        let index = slot as usize;
        let is_alone = plan.isolate && kind.named;
        if is_alone && self.named_on[index] > 0 {
            return 0;
        }
        if plan.one_per_tree && !kind.demands.is_empty() && self.tree_is_taken(slot) {
            return 0;
        }
        let room = &self.instance.room[index * plan.classes.len()..];
        let most = if is_alone { 1 } else { kind.count };
        let demands = kind.demands.iter();
        let fits = demands.map(|demand| room[demand.class] / demand.amount);
        fits.fold(most, u64::min)
    }

    /// Like [`Self::fits`], but 0 if the placement is a known dead end (a nogood).
    pub(super) fn open_fits(&self, plan: &Plan<'a>, kind: usize, slot: SlotIndex) -> u64 {
        if self.is_nogood(kind, slot) {
            0
        } else {
            self.fits(plan, kind, slot)
        }
    }

    /// Whether another provider of the slot's tree is already used.
    fn tree_is_taken(&self, slot: SlotIndex) -> bool {
        let tree = |slot| self.instance.place(slot).tree;
        let mut taking = (0..)
            .zip(&self.taking_from)
            .filter(|(_, taking)| **taking > 0);
        self.taking_from[slot as usize] == 0 && taking.any(|(other, _)| tree(other) == tree(slot))
    }

    fn rooms_suffice(&self, plan: &Plan<'a>) -> bool {
        let total: u64 = self.left.iter().sum();
        let mut kinds_left = 0;
        let mut tight = false;
        for (kind, &left) in self.left.iter().enumerate().filter(|(_, left)| **left > 0) {
            kinds_left += 1;
            let (mut ways, mut slots) = (0, 0);
            for &slot in &self.instance.domains[kind] {
                let fits = self.open_fits(plan, kind, slot);
                ways += fits;
                slots += fits.min(1);
                if ways >= left && slots >= total {
                    break;
                }
            }
            if ways < left {
                return false;
            }
            tight |= slots < total;
        }
        // If each kind has at least as many slots as variables of all kinds remain, every variable
        // can get a slot of its own. With only one remaining kind, the counts above are exact.
        !tight
            || kinds_left < 2
            || (plan
                .contests
                .iter()
                .all(|contest| self.contest_has_room(plan, contest))
                && (!plan.isolate || self.isolation_has_room(plan)))
    }

    /// Whether a class suffices for all kinds that demand it, assuming that amounts can be split
    /// arbitrarily.
    fn contest_has_room(&self, plan: &Plan<'a>, contest: &ContendedClass) -> bool {
        let classes = plan.classes.len();
        let room = (0..self.instance.slots.len())
            .map(|slot| self.instance.room[slot * classes + contest.class])
            .collect();
        self.flows(plan, contest.kinds.iter().copied(), room)
    }

    /// Whether every named group can have a separate provider.
    fn isolation_has_room(&self, plan: &Plan<'a>) -> bool {
        let kinds = (0..plan.kinds.len()).filter(|kind| plan.kinds[*kind].named);
        self.flows(
            plan,
            kinds.map(|kind| (kind, 1)),
            vec![1; self.instance.slots.len()],
        )
    }

    fn flows(
        &self,
        plan: &Plan<'a>,
        kinds: impl Iterator<Item = (usize, u64)>,
        room: Vec<u64>,
    ) -> bool {
        let mut flow = Flow::new(room);
        for (kind, amount) in kinds.filter(|(kind, _)| self.left[*kind] > 0) {
            let mut limits = vec![0; self.instance.slots.len()];
            for &slot in &self.instance.domains[kind] {
                limits[slot as usize] = self.open_fits(plan, kind, slot) * amount;
            }
            if !flow.add(self.left[kind] * amount, limits) {
                return false;
            }
        }
        true
    }

    /// Whether the providers still to be chosen can cover the remaining required traits of the
    /// unnumbered group.
    fn traits_coverable(&self, plan: &Plan<'a>) -> bool {
        let sets = plan.trait_sets.len();
        (0..sets).all(|set| {
            let covers = |slot: SlotIndex| self.instance.covers[slot as usize * sets + set];
            let mut placed = self.placements(plan);
            let mut left = (0..plan.kinds.len())
                .filter(|kind| !plan.kinds[*kind].named && self.left[*kind] > 0);
            placed.any(|(kind, slot)| !plan.kinds[kind].named && covers(slot))
                || left.any(|kind| self.open_slots(plan, kind).any(covers))
        })
    }
}

/// Maximum flow from kinds to slots (Edmonds and Karp, 1972), one kind added at a time.
struct Flow {
    /// The remaining capacity of each slot.
    room: Vec<u64>,
    /// The residual capacity from each kind to each slot.
    limits: Vec<Vec<u64>>,
    /// The flow from each kind to each slot.
    sent: Vec<Vec<u64>>,
}

impl Flow {
    fn new(room: Vec<u64>) -> Self {
        Self {
            room,
            limits: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// Adds a kind that sends `demand`, at most `limits` to each slot. Returns false if a part of
    /// the demand cannot be placed.
    fn add(&mut self, demand: u64, limits: Vec<u64>) -> bool {
        let kind = self.limits.len();
        self.sent.push(vec![0; limits.len()]);
        self.limits.push(limits);
        let mut rest = demand;
        for slot in 0..self.room.len() {
            let amount = rest.min(self.limits[kind][slot]).min(self.room[slot]);
            self.send(kind, slot, amount);
            self.room[slot] -= amount;
            rest -= amount;
        }
        while rest > 0 {
            match self.augment(kind, rest) {
                0 => return false,
                amount => rest -= amount,
            }
        }
        true
    }

    fn send(&mut self, kind: usize, slot: usize, amount: u64) {
        self.limits[kind][slot] -= amount;
        self.sent[kind][slot] += amount;
    }

    /// Sends up to `most` more from a kind along the shortest augmenting path, which may reroute
    /// other kinds.
    fn augment(&mut self, from: usize, most: u64) -> u64 {
        let mut kind_before: Vec<Option<usize>> = vec![None; self.room.len()];
        let mut slot_before: Vec<Option<usize>> = vec![None; self.limits.len()];
        let mut queue = vec![from];
        let mut at = 0;
        while let Some(&kind) = queue.get(at) {
            at += 1;
            for slot in 0..self.room.len() {
                if self.limits[kind][slot] == 0 || kind_before[slot].is_some() {
                    continue;
                }
                kind_before[slot] = Some(kind);
                if self.room[slot] > 0 {
                    return self.send_along(slot, most, &kind_before, &slot_before);
                }
                for (other, before) in slot_before.iter_mut().enumerate() {
                    if other != from && before.is_none() && self.sent[other][slot] > 0 {
                        *before = Some(slot);
                        queue.push(other);
                    }
                }
            }
        }
        0
    }

    fn send_along(
        &mut self,
        end: usize,
        most: u64,
        kind_before: &[Option<usize>],
        slot_before: &[Option<usize>],
    ) -> u64 {
        let mut way = Vec::new();
        let mut slot = end;
        let mut amount = most.min(self.room[end]);
        while let Some(kind) = kind_before[slot] {
            way.push((kind, slot));
            amount = amount.min(self.limits[kind][slot]);
            // The path begins at this kind.
            let Some(before) = slot_before[kind] else {
                break;
            };
            amount = amount.min(self.sent[kind][before]);
            slot = before;
        }
        self.room[end] -= amount;
        for (kind, slot) in way {
            self.send(kind, slot, amount);
            if let Some(before) = slot_before[kind] {
                self.limits[kind][before] += amount;
                self.sent[kind][before] -= amount;
            }
        }
        amount
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn later_kind_reroutes_an_earlier_one() {
        // The first kind takes from slot 0, the only slot that the second kind can use.
        let mut flow = Flow::new(vec![4, 4]);
        assert!(flow.add(4, vec![4, 4]));
        assert!(flow.add(4, vec![4, 0]));
        assert!(!flow.add(1, vec![1, 1]));
    }

    #[test]
    fn chain_of_kinds_is_rerouted() {
        let mut flow = Flow::new(vec![1, 1, 1]);
        assert!(flow.add(1, vec![1, 1, 0]));
        assert!(flow.add(1, vec![0, 1, 1]));
        assert!(flow.add(1, vec![1, 0, 0]));
    }

    /// Minimum cut by enumeration of all sets of kinds.
    fn can_flow(room: &[u64], kinds: &[(u64, Vec<u64>)]) -> bool {
        (0..1_usize << kinds.len()).all(|set| {
            let chosen = || (0..kinds.len()).filter(|kind| set & (1 << kind) != 0);
            let wanted: u64 = chosen().map(|kind| kinds[kind].0).sum();
            let into = |slot: usize| chosen().map(|kind| kinds[kind].1[slot]).sum::<u64>();
            wanted <= (0..room.len()).map(|slot| room[slot].min(into(slot))).sum()
        })
    }

    proptest! {
        #[test]
        fn flow_succeeds_exactly_if_minimum_cut_allows(
            room in vec(0..5_u64, 4),
            kinds in vec((1..6_u64, vec(0..4_u64, 4)), 1..6),
        ) {
            let mut flow = Flow::new(room.clone());
            let flows = kinds.iter().all(|(demand, limits)| flow.add(*demand, limits.clone()));
            prop_assert_eq!(flows, can_flow(&room, &kinds));
        }
    }
}
