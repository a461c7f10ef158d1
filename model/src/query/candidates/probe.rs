//! Tests whether single trees have a candidate.

use super::budget::StepBudget;
use super::filter::anchors;
use super::plan::Plan;
use super::request::CandidateRequest;
use super::sharing::SharingProviders;
use super::tree_search::{Step, TreeSearch};
use crate::query::tree_filter::TreeFilter;
use crate::state::State;
use crate::state::tree::{Tree, TreeNumber};

/// The search of a request, confined to one anchor at a time.
pub(in crate::query) struct Probe<'a> {
    plan: Plan<'a>,
    sharing: SharingProviders<'a>,
    anchors: TreeFilter<'a>,
    search: TreeSearch<'a>,
}

impl<'a> Probe<'a> {
    /// Returns `None` if no tree can have a candidate, for example because of an unknown name.
    pub(in crate::query) fn new(
        state: &'a State,
        request: &'a CandidateRequest,
        budget: &mut StepBudget<'_>,
    ) -> Option<Self> {
        let plan = Plan::build(state, request)?;
        let sharing = SharingProviders::find(&plan, budget);
        Some(Self {
            anchors: anchors(&plan, &sharing),
            search: TreeSearch::default(),
            sharing,
            plan,
        })
    }

    /// Whether a tree is the anchor of a candidate; `None` if the watch stopped the search.
    pub(in crate::query) fn finds(
        &mut self,
        number: TreeNumber,
        tree: &'a Tree,
        budget: &mut StepBudget<'_>,
    ) -> Option<bool> {
        let found = self.anchors.passes(number.0)
            && (self.search).begin(&self.plan, &self.sharing, (number, tree), budget)
            && self.search.next(&self.plan, budget) == Step::Found;
        (found || !budget.stopped()).then_some(found)
    }
}
