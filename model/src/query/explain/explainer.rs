//! Looks at the trees of a state one by one, in a bounded number of steps.

use std::ops::ControlFlow;

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
    watch: Watch<'a>,
    pub(super) steps: u64,
    pub(super) stopped: bool,
}

impl<'a> Explainer<'a> {
    pub(super) fn new(state: &'a State, watch: Watch<'a>, atoms: &Atoms<'a>) -> Self {
        let mut watch = watch;
        let mut budget = StepBudget::new(Some(Box::new(&mut watch)));
        let sharing =
            SharingProviders::find_all(state, atoms.parts.len(), &mut budget, |tree, node| {
                let mut looks = Vec::new();
                atoms.look(tree, None, node, &mut looks);
                Some(looks)
            });
        let (steps, stopped) = (budget.steps(), budget.stopped());
        drop(budget);
        Self {
            state,
            sharing,
            watch,
            steps,
            stopped,
        }
    }

    pub(super) fn spend(&mut self, steps: u64) -> bool {
        let before = self.steps / 1_024;
        self.steps += steps;
        if self.steps / 1_024 > before {
            self.stopped |= (self.watch)(self.steps).is_break();
        }
        !self.stopped
    }

    /// For a search of so many steps at most.
    fn budget(&mut self, most: u64) -> StepBudget<'_> {
        let (before, watch) = (self.steps, &mut self.watch);
        StepBudget::new(Some(Box::new(move |steps| match steps > most {
            true => ControlFlow::Break(()),
            false => watch(before + steps),
        })))
    }

    /// The search of a request; `None` if it names what does not exist, or if the time is up.
    pub(super) fn prepare<'b>(&mut self, request: &'b CandidateRequest) -> Option<Probe<'b>>
    where
        'a: 'b,
    {
        let state: &'b State = self.state;
        let mut budget = self.budget(u64::MAX);
        let probe = Probe::new(state, request, &mut budget);
        let (steps, stopped) = (budget.steps(), budget.stopped());
        drop(budget);
        self.steps += steps;
        self.stopped |= stopped;
        probe.filter(|_| !stopped)
    }

    /// Whether a tree has a candidate; `None`: that was not found out in time.
    pub(super) fn probe<'b>(
        &mut self,
        probe: &mut Probe<'b>,
        number: TreeNumber,
        tree: &'b Tree,
    ) -> Option<bool> {
        if self.stopped {
            return None;
        }
        let mut budget = self.budget(STEPS_PER_TREE);
        let found = probe.finds(number, tree, &mut budget);
        let steps = budget.steps();
        drop(budget);
        self.spend(steps);
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
        if !self.spend(1 + (tree.nodes.len() * atoms.parts.len()) as u64 / 8) {
            return false;
        }
        let shared = self.sharing.reaching(number, tree);
        let shared = shared.iter().map(|provider| &provider.serves);
        atoms.look_over(number, tree, shared, looks);
        // Each is compared with the atoms again and again.
        self.spend((looks.list.len() * atoms.list.len()) as u64 / 128)
    }
}
