//! Selects the trees that may be anchors of a candidate.

use std::borrow::Cow;

use super::plan::{Kind, Plan, Rule};
use super::sharing::SharingProviders;
use crate::query::tree_filter::{TreeFilter, with_any_member, with_any_trait};
use crate::state::change::TraitId;
use crate::state::indexes::Indexes;
use crate::state::tree_set::TreeSet;

/// The trees that may be anchors of a candidate.
pub(super) fn anchors<'a>(plan: &Plan<'a>, sharing: &SharingProviders<'_>) -> TreeFilter<'a> {
    let indexes = plan.state.indexes();
    let mut filter = roots(indexes, &plan.root_required, &plan.root_forbidden);
    if let Some(only) = plan.only_trees {
        filter.require(vec![Cow::Borrowed(only)]);
    }
    if !plan.not_trees.is_empty() {
        filter.forbid(plan.not_trees);
    }
    let reach: Vec<TreeSet> = (0..plan.kinds.len())
        .map(|kind| sharing.reach(plan.state, kind))
        .collect();
    for (kind, reached) in plan.kinds.iter().zip(&reach) {
        add_kind(&mut filter, plan, kind, reached);
    }
    for any in &plan.trait_sets {
        let mut sets = with_any_trait(indexes, any);
        let kinds = plan.kinds.iter().zip(&reach);
        let unnumbered = kinds.filter(|(kind, _)| !kind.named);
        sets.extend(unnumbered.map(|(_, reached)| Cow::Owned(reached.clone())));
        filter.require(sets);
    }
    filter
}

/// The trees whose root has all `required` and none of the `forbidden` traits.
pub(super) fn roots<'a>(
    indexes: &'a Indexes,
    required: &[TraitId],
    forbidden: &[TraitId],
) -> TreeFilter<'a> {
    let with = |id: &TraitId| indexes.with_root_trait(*id);
    let required = required.iter().map(with);
    let sets = required.map(|set| set.map(Cow::Borrowed).into_iter().collect());
    let mut filter = TreeFilter::new(sets.collect());
    forbidden
        .iter()
        .filter_map(with)
        .for_each(|set| filter.forbid(set));
    filter
}

/// Requires that a provider of the tree, or a sharing provider for the tree, can serve the kind.
fn add_kind<'a>(filter: &mut TreeFilter<'a>, plan: &Plan<'a>, kind: &Kind, reached: &TreeSet) {
    let indexes = plan.state.indexes();
    let rule: &Rule<'_> = &plan.rules[kind.rule];
    let mut either = |mut sets: Vec<Cow<'a, TreeSet>>| {
        if !reached.is_empty() {
            sets.push(Cow::Owned(reached.clone()));
        }
        filter.require(sets);
    };
    for demand in &kind.demands {
        let offering = indexes.offering(demand.id, demand.amount);
        either(offering.map(Cow::Borrowed).collect());
    }
    for any in rule.member_of {
        either(with_any_member(indexes, any));
    }
    if let Some(tree) = rule.in_tree {
        either(vec![Cow::Owned(TreeSet::from_iter([tree.0]))]);
    }
    if rule.named {
        for any in &rule.required {
            either(with_any_trait(indexes, any));
        }
    } else {
        let barred = rule.not_member_of.iter();
        for set in barred.filter_map(|id| indexes.with_root_member(id)) {
            filter.forbid(set);
        }
    }
}
