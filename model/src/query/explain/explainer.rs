//! Looks at the trees of a state one by one, in a bounded number of steps.

use super::atoms::{Atoms, Look, Looks};
use crate::query::candidates::{CandidateRequest, Probe, SharingProviders, StepBudget, Watch};
use crate::state::State;
use crate::state::tree::{Tree, TreeNumber};

/// The search for a candidate of one tree takes at most so many steps.
const STEPS_PER_TREE: u64 = 20_000;

/// Looks at the trees of a state.
pub(super) struct Explainer<'a> {
    pub(super) state: &'a State,
    sharing: SharingProviders<'a, Vec<Look<'a>>>,
    pub(super) budget: StepBudget<'a>,
}

impl<'a> Explainer<'a> {
    pub(super) fn new(state: &'a State, watch: Watch<'a>, atoms: &Atoms<'a>) -> Self {
        let mut budget = StepBudget::new(Some(watch));
        let sharing =
            SharingProviders::find_all(state, atoms.parts.len(), &mut budget, |tree, node| {
                let mut looks = Vec::new();
                atoms.look(tree, None, node, &mut looks);
                Some(looks)
            });
        Self {
            state,
            sharing,
            budget,
        }
    }

    /// The search of a request; `None` if it names what does not exist, or if the time is up.
    pub(super) fn prepare<'b>(&mut self, request: &'b CandidateRequest) -> Option<Probe<'b>>
    where
        'a: 'b,
    {
        let state: &'b State = self.state;
        let probe = Probe::new(state, request, &mut self.budget);
        probe.filter(|_| !self.budget.stopped())
    }

    /// Whether a tree has a candidate; `None`: that was not found out in time.
    pub(super) fn probe<'b>(
        &mut self,
        probe: &mut Probe<'b>,
        number: TreeNumber,
        tree: &'b Tree,
    ) -> Option<bool> {
        if self.budget.stopped() {
            return None;
        }
        let mut part = self.budget.part(STEPS_PER_TREE);
        let found = probe.finds(number, tree, &mut part);
        let steps = part.steps();
        drop(part);
        self.budget.spend(steps);
        found
    }

    /// Lays out a tree; false if the time is up.
    pub(super) fn look_over(
        &mut self,
        atoms: &Atoms<'a>,
        number: TreeNumber,
        looks: &mut Looks<'a>,
    ) -> bool {
        let Some(tree) = self.state.tree(number) else {
            return false;
        };
        if !self
            .budget
            .spend(1 + (tree.nodes.len() * atoms.parts.len()) as u64 / 8)
        {
            return false;
        }
        let shared = self.sharing.reaching(number, tree);
        let shared = shared.iter().map(|provider| &provider.serves);
        atoms.look_over(number, tree, shared, looks);
        // Each is compared with the atoms again and again.
        self.budget
            .spend((looks.list.len() * atoms.list.len()) as u64 / 128)
    }
}
