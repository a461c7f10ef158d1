//! Evaluates the trees of a state one by one, in a bounded number of steps.

use super::atoms::{Atoms, ProviderCheck, TreeCheck};
use crate::mutant;
use crate::query::candidates::{CandidateRequest, Probe, SharingProviders, StepBudget, Watch};
use crate::state::State;
use crate::state::tree::{Tree, TreeNumber};

/// Maximum number of steps to search one tree for a candidate.
const STEPS_PER_TREE: u64 = 20_000;

/// Evaluates the trees of a state for one request.
pub(super) struct Explainer<'a> {
    pub(super) state: &'a State,
    pub(super) atoms: &'a Atoms<'a>,
    sharing: SharingProviders<'a, Vec<ProviderCheck<'a>>>,
    pub(super) budget: StepBudget<'a>,
}

impl<'a> Explainer<'a> {
    pub(super) fn new(state: &'a State, watch: Watch<'a>, atoms: &'a Atoms<'a>) -> Self {
        let mut budget = StepBudget::new(Some(watch));
        let parts = atoms.parts.len();
        let sharing = SharingProviders::find_all(state, parts, &mut budget, |tree, node| {
            let mut looks = Vec::new();
            atoms.look(tree, None, node, &mut looks);
            Some(looks)
        });
        Self {
            state,
            atoms,
            sharing,
            budget,
        }
    }

    /// Prepares the search of a request; `None` if the request contains an unknown name or time has
    /// run out.
    pub(super) fn prepare<'b>(&mut self, request: &'b CandidateRequest) -> Option<Probe<'b>>
    where
        'a: 'b,
    {
        let state: &'b State = self.state;
        let probe = Probe::new(state, request, &mut self.budget);
        probe.filter(|_| !self.budget.stopped())
    }

    /// Whether a tree has a candidate; `None` if the search did not end in time.
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

    /// Evaluates the providers of a tree, sharing providers included; `None` if time has run out.
    pub(super) fn check_tree(&mut self, number: TreeNumber) -> Option<TreeCheck<'a>> {
        let (atoms, tree) = (self.atoms, self.state.tree(number)?);
        let steps = 1 + (tree.nodes.len() * atoms.parts.len()) as u64 / 8;
        if !self.budget.spend(steps) {
            return None;
        }
        let root = tree.root();
        let mut looks = TreeCheck {
            list: Vec::new(),
            fails: atoms.fails(root),
        };
        for node in &tree.nodes {
            atoms.look(number, Some(root), node, &mut looks.list);
        }
        if !mutant!("explain-sharing-forgotten") {
            let shared = self
                .sharing
                .reaching(number, tree)
                .into_iter()
                .flat_map(|provider| &provider.serves);
            looks.list.extend(shared.cloned());
        }
        // The caller tests every provider check against the atoms several times.
        let steps = (looks.list.len() * atoms.list.len()) as u64 / 128;
        self.budget.spend(steps).then_some(looks)
    }
}
