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
    AbsentName, Explanation, Holder, Lack, Less, Name, Near, Relaxation, Stage, Verdict,
};
pub use atoms::{Atom, TooManyAtoms};

use self::atoms::{Atoms, Looks, Test, up_to};
use self::explainer::Explainer;
use self::relax::{Way, ways};
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
        let atoms = Atoms::of(self, request)?;
        let mut explainer = Explainer::new(self, watch, &atoms);
        let mut walk = Walk::new(self, &atoms);
        explainer.walk(&mut walk);
        let mut found = walk.found;
        let mut left = found.trees;
        for stage in &mut found.funnel {
            left -= stage.gone;
            stage.left = left;
        }
        found.verdict = match (found.with_candidates, found.undecided) {
            (1.., _) => Verdict::Some,
            (0, 0) => Verdict::None,
            (0, _) => Verdict::Undecided,
        };
        if found.with_candidates == 0 {
            found.relaxations = explainer.relaxations(&walk.ways, spell);
            let nearest = walk.nearest.iter();
            let nearest = nearest.map(|(_, number)| explainer.near(*number));
            found.nearest = nearest.flatten().collect();
        }
        found.steps = explainer.budget.steps();
        Ok(found)
    }
}

/// What a walk over all trees has found.
struct Walk {
    found: Explanation,
    ways: Vec<Way>,
    /// Trees that lack little, with how many atoms.
    nearest: Vec<(u32, TreeNumber)>,
}

impl Explainer<'_> {
    /// Finds the reason of each tree, and what might help those without candidates.
    fn walk(&mut self, walk: &mut Walk) {
        let (state, atoms) = (self.state, self.atoms);
        let together = atoms.list.len() - 1;
        let mut probe = self.prepare(atoms.request);
        for (number, tree) in state.trees() {
            let Some(looks) = self.look_over(number) else {
                walk.found.undecided += 1;
                continue;
            };
            let reason = atoms.first_unmet(&looks);
            let found = match &mut probe {
                Some(probe) if reason == together => self.probe(probe, number, tree),
                _ => Some(false),
            };
            match found {
                None => {
                    walk.found.undecided += 1;
                    walk.note_ways(atoms, number, &looks);
                    continue;
                }
                Some(true) => {
                    walk.found.with_candidates += 1;
                    if !mutant!("explain-counted-twice") {
                        continue;
                    }
                }
                Some(false) => {}
            }
            walk.note(atoms, reason, (number, tree), &looks);
        }
    }
}

impl Walk {
    fn new(state: &State, atoms: &Atoms<'_>) -> Self {
        let (unknown, unused) = names::absent(state, atoms.request);
        let funnel = atoms.list.iter().map(|one| Stage {
            atom: one.atom.clone(),
            ..Stage::default()
        });
        let found = Explanation {
            trees: state.sizes().trees as u64,
            unknown,
            unused,
            funnel: funnel.collect(),
            ..Explanation::default()
        };
        Self {
            found,
            ways: ways(atoms),
            nearest: Vec::new(),
        }
    }

    /// Takes a tree in that has no candidate.
    fn note(
        &mut self,
        atoms: &Atoms<'_>,
        reason: usize,
        (number, tree): (TreeNumber, &Tree),
        looks: &Looks<'_>,
    ) {
        let stage = &mut self.found.funnel[reason];
        stage.gone += 1;
        if stage.examples.len() < EXAMPLES {
            stage.examples.push(NamedProvider::of(tree.root()));
        }
        if let Test::Room(class, _) = atoms.list[reason].test {
            // Those that would serve if they had room.
            let looks = looks.list.iter();
            let able = looks.filter(|look| look.fails & up_to(reason) == 1 << reason);
            let offers = able.filter_map(|look| look.node.stock(class)).map(offer);
            stage.most_free = stage.most_free.max(offers.max());
        }
        if self.found.with_candidates > 0 {
            return;
        }
        self.note_ways(atoms, number, looks);
        let lacks = atoms.lacks(looks).0.count_ones().max(1);
        self.nearest.push((lacks, number));
        self.nearest.sort_by_key(|(lacks, _)| *lacks);
        self.nearest.truncate(NEAREST);
    }

    /// Notes what might help a tree.
    fn note_ways(&mut self, atoms: &Atoms<'_>, number: TreeNumber, looks: &Looks<'_>) {
        for way in &mut self.ways {
            if way.may_help(atoms, looks) {
                way.trees.insert(number.0);
            }
        }
    }
}
