//! Why a request for allocation candidates has no answer, or few.
//!
//! A request is split into atoms (`atoms`). The funnel is the number of trees that can meet the first of them, the first
//! two, and so on, so each tree is gone at exactly one atom or has a candidate: that one is its reason. What each
//! provider meets by itself is found in one pass over the trees. What has to be met by several together is left to the
//! search (`candidates`), one tree at a time. `relax` finds what could be asked instead.

mod answer;
mod atoms;
mod explainer;
mod names;
mod nearest;
mod relax;

pub use answer::{
    AbsentName, Explanation, Holder, Lack, Less, Near, Relaxation, Stage, TooManyAtoms, Verdict,
};
pub use atoms::{Atom, AtomKind};

use self::atoms::{Atoms, Looks, up_to};
use self::explainer::Explainer;
use self::relax::ways;
use crate::mutant;
use crate::query::NamedProvider;
use crate::query::candidates::{CandidateRequest, Watch};
use crate::state::State;
use crate::state::indexes::offer;
use crate::state::tree::{Tree, TreeNumber};

/// Trees that are named of those that an atom takes away.
const EXAMPLES: usize = 3;
/// Trees that are shown as nearly right.
const NEAREST: usize = 5;

impl State {
    /// Why a request has the answer that it has. The limits of the request do not matter. The watch is called now and
    /// then with the steps that were taken, and may end it: what was found by then is returned. `spell` writes a
    /// request as a query, if there is one that asks for it.
    ///
    /// # Errors
    /// A request with too many conditions.
    pub fn explain<'a>(
        &'a self,
        request: &'a CandidateRequest,
        watch: Watch<'a>,
        spell: &dyn Fn(&CandidateRequest) -> Option<String>,
    ) -> Result<Explanation, TooManyAtoms> {
        let atoms = Atoms::of(self, request).map_err(|found| TooManyAtoms { found })?;
        let mut explainer = Explainer::new(self, watch, &atoms);
        let mut found = explainer.walk(&atoms);
        let mut explanation = found.explanation(self, request);
        if explanation.with_candidates == 0 {
            explanation.relaxations = explainer.relaxations(&atoms, found.ways, spell);
            let nearest = found.nearest.iter();
            let nearest = nearest.map(|(_, number)| explainer.near(&atoms, *number));
            explanation.nearest = nearest.flatten().collect();
        }
        explanation.steps = explainer.budget.steps();
        Ok(explanation)
    }
}

/// What a walk over all trees has found.
struct Walk {
    stages: Vec<Stage>,
    with_candidates: u64,
    undecided: u64,
    ways: Vec<relax::Way>,
    /// Trees that lack little, with how many atoms.
    nearest: Vec<(u32, TreeNumber)>,
}

impl<'a> Explainer<'a> {
    /// Finds the reason of each tree, and what might help those without candidates.
    fn walk(&mut self, atoms: &Atoms<'a>) -> Walk {
        let stage = |atom: &Atom| Stage {
            atom: atom.clone(),
            left: 0,
            gone: 0,
            most_free: None,
            examples: Vec::new(),
        };
        let mut walk = Walk {
            stages: atoms.list.iter().map(stage).collect(),
            with_candidates: 0,
            undecided: 0,
            ways: ways(atoms),
            nearest: Vec::new(),
        };
        let together = atoms.list.len() - 1;
        let mut probe = self.prepare(atoms.request);
        let mut looks = Looks::default();
        for (number, tree) in self.state.trees() {
            if !self.look_over(atoms, number, &mut looks) {
                walk.undecided += 1;
                continue;
            }
            let reason = atoms.first_unmet(&looks);
            if reason == together
                && let Some(probe) = &mut probe
            {
                match self.probe(probe, number, tree) {
                    Some(true) => {
                        walk.with_candidates += 1;
                        if !mutant!("explain-counted-twice") {
                            continue;
                        }
                    }
                    Some(false) => {}
                    None => {
                        walk.undecided += 1;
                        walk.note_ways(atoms, number, &looks);
                        continue;
                    }
                }
            }
            walk.note(self.state, atoms, reason, (number, tree), &looks);
        }
        walk
    }
}

impl Walk {
    /// Takes a tree in that has no candidate.
    fn note(
        &mut self,
        state: &State,
        atoms: &Atoms<'_>,
        reason: usize,
        (number, tree): (TreeNumber, &Tree),
        looks: &Looks<'_>,
    ) {
        let stage = &mut self.stages[reason];
        stage.gone += 1;
        if stage.examples.len() < EXAMPLES {
            stage.examples.push(NamedProvider::of(tree.root()));
        }
        if stage.atom.kind == AtomKind::Room
            && let Some(class) = &stage.atom.class
            && let Some(id) = state.class_given(class)
        {
            // Those that would serve if they had room.
            let able = looks.list.iter().filter(|look| {
                let before = up_to(reason) & !(1 << reason);
                look.fails & before == 0 && look.fails & 1 << reason != 0
            });
            let offers = able.filter_map(|look| look.node.stock(id)).map(offer);
            stage.most_free = stage.most_free.max(offers.max());
        }
        if self.with_candidates > 0 {
            return;
        }
        self.note_ways(atoms, number, looks);
        let lacks = atoms.lacks(looks).0.count_ones().max(1);
        let farthest = self.nearest.last().map(|(lacks, _)| *lacks);
        if self.nearest.len() < NEAREST || farthest.is_some_and(|farthest| lacks < farthest) {
            let at = self.nearest.partition_point(|(other, _)| *other <= lacks);
            self.nearest.insert(at, (lacks, number));
            self.nearest.truncate(NEAREST);
        }
    }

    /// Notes what might help a tree.
    fn note_ways(&mut self, atoms: &Atoms<'_>, number: TreeNumber, looks: &Looks<'_>) {
        for way in &mut self.ways {
            if way.may_help(atoms, looks) {
                way.trees.insert(number.0);
            }
        }
    }

    /// Adds up.
    fn explanation(&mut self, state: &State, request: &CandidateRequest) -> Explanation {
        let trees = state.sizes().trees as u64;
        let mut left = trees;
        for stage in &mut self.stages {
            left -= stage.gone;
            stage.left = left;
        }
        let (unknown, unused) = names::absent(state, request);
        let verdict = match (self.with_candidates, self.undecided) {
            (1.., _) => Verdict::Some,
            (0, 0) => Verdict::None,
            (0, _) => Verdict::Undecided,
        };
        Explanation {
            verdict,
            trees,
            with_candidates: self.with_candidates,
            undecided: self.undecided,
            unknown,
            unused,
            funnel: std::mem::take(&mut self.stages),
            relaxations: Vec::new(),
            nearest: Vec::new(),
            steps: 0,
        }
    }
}
