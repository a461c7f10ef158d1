//! Sharing providers: a provider with the trait `MISC_SHARES_VIA_AGGREGATE` serves every tree that
//! has a member in one of the provider's aggregates.

use std::collections::BTreeMap;

use super::answer::Seat;
use super::budget::StepBudget;
use super::plan::Plan;
use crate::state::State;
use crate::state::change::TraitId;
use crate::state::tree::{Node, Tree, TreeNumber};
use crate::state::tree_set::TreeSet;
use crate::types::AggregateUuid;

/// The sharing providers that could serve some part of a request for other trees. `T` describes
/// what each one serves; by default the kinds of a plan.
pub(in crate::query) struct SharingProviders<'a, T = Vec<usize>> {
    list: Vec<SharingProvider<'a, T>>,
    by_aggregate: BTreeMap<&'a AggregateUuid, Vec<usize>>,
    sharing_trait: Option<TraitId>,
}

/// A sharing provider and the parts that it serves.
pub(in crate::query) struct SharingProvider<'a, T = Vec<usize>> {
    pub(super) seat: Seat<'a>,
    pub(in crate::query) serves: T,
}

impl<'a> SharingProviders<'a> {
    /// Finds the sharing providers that can serve a kind of the plan.
    pub(super) fn find(plan: &Plan<'a>, budget: &mut StepBudget<'_>) -> Self {
        Self::find_all(plan.state, plan.kinds.len(), budget, |tree, node| {
            let serves = |kind: &usize| plan.serves_others(&plan.kinds[*kind], tree, node);
            let kinds: Vec<_> = (0..plan.kinds.len()).filter(serves).collect();
            (!kinds.is_empty()).then_some(kinds)
        })
    }

    /// The trees that some sharing provider can serve with this kind.
    pub(super) fn reach(&self, state: &State, kind: usize) -> TreeSet {
        let mut reach = TreeSet::default();
        for (aggregate, providers) in &self.by_aggregate {
            let serves = |provider: &usize| self.list[*provider].serves.contains(&kind);
            if providers.iter().any(serves)
                && let Some(members) = state.indexes().with_member(aggregate)
            {
                reach.absorb(members);
            }
        }
        reach
    }
}

impl<'a, T> SharingProviders<'a, T> {
    /// Finds the sharing providers for which `serves` returns a value. `parts` is the number of
    /// parts that each provider is tested for, and determines the cost.
    pub(in crate::query) fn find_all(
        state: &'a State,
        parts: usize,
        budget: &mut StepBudget<'_>,
        serves: impl Fn(TreeNumber, &'a Node) -> Option<T>,
    ) -> Self {
        let mut sharing = Self {
            list: Vec::new(),
            by_aggregate: BTreeMap::new(),
            sharing_trait: state.sharing_trait(),
        };
        let id = sharing.sharing_trait;
        let trees = id.and_then(|id| state.indexes().with_trait(id));
        for number in trees.into_iter().flat_map(TreeSet::iter) {
            let number = TreeNumber(number);
            let Some(tree) = state.tree(number) else {
                continue;
            };
            // The caller notices at its next step that the budget is stopped.
            if !budget.spend(1 + (tree.nodes.len() * parts) as u64 / 8) {
                break;
            }
            for (node, index) in tree.nodes.iter().zip(0..) {
                let serves = sharing.shares(node).then(|| serves(number, node)).flatten();
                if let Some(serves) = serves {
                    let place = number.node(index);
                    sharing.add(Seat { place, node, tree }, serves);
                }
            }
        }
        sharing
    }

    fn add(&mut self, seat: Seat<'a>, serves: T) {
        for aggregate in seat.node.aggregates.iter() {
            let providers = self.by_aggregate.entry(aggregate).or_default();
            providers.push(self.list.len());
        }
        self.list.push(SharingProvider { seat, serves });
    }

    /// Whether the provider is a sharing provider.
    pub(super) fn shares(&self, node: &Node) -> bool {
        self.sharing_trait
            .is_some_and(|id| node.traits.contains(&id))
    }

    /// The sharing providers of other trees that can serve this tree.
    pub(in crate::query) fn reaching(
        &self,
        number: TreeNumber,
        tree: &Tree,
    ) -> Vec<&SharingProvider<'a, T>> {
        if self.list.is_empty() {
            return Vec::new();
        }
        let aggregates = tree.nodes.iter().flat_map(|node| node.aggregates.iter());
        let providers = aggregates.filter_map(|aggregate| self.by_aggregate.get(aggregate));
        let mut found: Vec<usize> = providers.flatten().copied().collect();
        found.sort_unstable();
        found.dedup();
        let found = found.into_iter().map(|index| &self.list[index]);
        found
            .filter(|provider| provider.seat.place.tree != number)
            .collect()
    }
}
