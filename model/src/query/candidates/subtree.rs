//! `same_subtree`: one provider of these groups must be an ancestor of all the others, or the only
//! provider.

use super::instance::SlotIndex;
use super::plan::Plan;
use super::tree_search::TreeSearch;

impl<'a> TreeSearch<'a> {
    /// Whether each `same_subtree` constraint may still be met.
    pub(super) fn subtrees_feasible(&self, plan: &Plan<'a>) -> bool {
        plan.subtrees.iter().enumerate().all(|(subtree, kinds)| {
            let placed: Vec<SlotIndex> = self
                .placements(plan)
                .filter(|(kind, _)| plan.kinds[*kind].subtrees.contains(&subtree))
                .map(|(_, slot)| slot)
                .collect();
            let heads = kinds
                .iter()
                .filter(|kind| self.left[**kind] > 0)
                .flat_map(|kind| self.open_slots(plan, *kind));
            let mut heads = placed.iter().copied().chain(heads);
            heads.any(|head| self.can_head(plan, head, &placed, kinds))
        })
    }

    /// Whether the subtree of a slot contains all placed slots and enough slots for all remaining
    /// variables.
    fn can_head(
        &self,
        plan: &Plan<'a>,
        head: SlotIndex,
        placed: &[SlotIndex],
        kinds: &[usize],
    ) -> bool {
        placed.iter().all(|slot| self.instance.heads(head, *slot))
            && kinds.iter().all(|kind| {
                let mut missing = self.left[*kind];
                let mut below = self.instance.slots_below(head, *kind).iter();
                while missing > 0 {
                    let Some(slot) = below.next() else {
                        return false;
                    };
                    missing = missing.saturating_sub(self.open_fits(plan, *kind, *slot));
                }
                true
            })
    }

    /// The slots that a variable of a kind can still be placed on.
    pub(super) fn open_slots(
        &self,
        plan: &Plan<'a>,
        kind: usize,
    ) -> impl Iterator<Item = SlotIndex> {
        let domain = self.instance.domains[kind].iter().copied();
        domain.filter(move |slot| self.open_fits(plan, kind, *slot) > 0)
    }
}
