//! Explains why a request for allocation candidates has no candidates, or only few.
//!
//! A request is split into atoms (`atoms`). The funnel counts the trees that can meet the first
//! atom, the first two atoms, and so on. Each tree either has a candidate or is eliminated at
//! exactly one atom. Conditions on a single provider are tested in one pass over the trees.
//! Conditions on several providers are left to the search (`candidates`), one tree at a time.
//! `relax` finds requests with fewer conditions that have candidates.

mod answer;
mod atoms;
mod detail;
mod explainer;
mod kind;
mod names;
mod nearest;
mod reason;
mod relax;

use std::cmp::Reverse;

pub use answer::{
    AbsentName, Bound, ClassShortage, Detail, Explanation, Holder, Name, NearTree, Reason,
    ReducedCapacity, Relaxation, RelaxedCondition, Stage, TraitElsewhere, UnmetCondition, Verdict,
};
pub use atoms::{Atom, TooManyAtoms};
pub use kind::Kind;

use self::atoms::{Atoms, Test, TreeCheck, missing_share, up_to};
use self::detail::SharedClass;
use self::explainer::Explainer;
use self::reason::{cause, reason};
use self::relax::{RelaxationTrial, ways};
use crate::mutant;
use crate::query::NamedProvider;
use crate::query::candidates::{CandidateRequest, Watch};
use crate::state::State;
use crate::state::indexes::offer;
use crate::state::tree::{Tree, TreeNumber};

/// Number of example trees per atom that eliminates trees.
const EXAMPLES: usize = 3;
/// Number of trees shown in [`Explanation::nearest`].
const NEAREST: usize = 5;

impl State {
    /// Explains the answer to a request, ignoring the limits on the number of candidates. The watch
    /// is called regularly with the number of steps so far, and may end the explanation early; the
    /// findings so far are then returned. `spell` writes a request as a query string, if the query
    /// language can express it.
    ///
    /// # Errors
    /// The request has too many conditions.
    pub fn explain<'a>(
        &'a self,
        request: &'a CandidateRequest,
        watch: Watch<'a>,
        spell: &dyn Fn(&CandidateRequest) -> Option<String>,
    ) -> Result<Explanation, TooManyAtoms> {
        let atoms = Atoms::from_request(self, request)?;
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
            let nearest = walk
                .nearest
                .iter()
                .map(|(_, number)| explainer.near(*number, &walk.shared));
            found.nearest = nearest.flatten().collect();
            let shorts = walk.shorts.into_iter().flatten();
            if let Some(stage) = found.funnel.last_mut() {
                stage.detail.short = shorts.flatten().next();
            }
            found.cause = cause(&found, &walk.ways);
            found.reason = Some(reason(&found));
        }
        found.steps = explainer.budget.steps();
        Ok(found)
    }
}

/// The distance of a tree from a candidate. Trees selected by `in_tree` are nearest; then trees
/// that fail at a later kind of condition, that fail fewer atoms, and that lack a smaller share of
/// the amounts.
type Distance = (Reverse<bool>, Reverse<Kind>, u32, u64);

/// The findings of a walk over all trees.
struct Walk {
    found: Explanation,
    ways: Vec<RelaxationTrial>,
    /// The classes that several groups request.
    shared: Vec<SharedClass>,
    /// For each of these classes, the smallest shortage among the trees eliminated at the last
    /// stage; `None` once a tree has enough.
    shorts: Vec<Option<Option<ClassShortage>>>,
    /// The trees with the smallest distance.
    nearest: Vec<(Distance, TreeNumber)>,
}

impl Explainer<'_> {
    /// Finds the atom that eliminates each tree, and the relaxations that may help the trees
    /// without candidates.
    fn walk(&mut self, walk: &mut Walk) {
        let (state, atoms) = (self.state, self.atoms);
        let together = atoms.list.len() - 1;
        let mut probe = self.prepare(atoms.request);
        let permitted = state
            .trees()
            .filter(|(number, _)| atoms.request.permits(*number));
        for (number, tree) in permitted {
            let Some(looks) = self.check_tree(number) else {
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
        let trees = state
            .trees()
            .filter(|(number, _)| atoms.request.permits(*number));
        let funnel = atoms.list.iter().map(|one| Stage {
            atom: one.atom.clone(),
            ..Stage::default()
        });
        let found = Explanation {
            trees: trees.count() as u64,
            unknown,
            unused,
            funnel: funnel.collect(),
            ..Explanation::default()
        };
        let shared = atoms.shared_classes();
        Self {
            found,
            ways: ways(atoms),
            shorts: vec![Some(None); shared.len()],
            shared,
            nearest: Vec::new(),
        }
    }

    /// Records a tree without a candidate.
    fn note(
        &mut self,
        atoms: &Atoms<'_>,
        reason: usize,
        (number, tree): (TreeNumber, &Tree),
        looks: &TreeCheck<'_>,
    ) {
        let stage = &mut self.found.funnel[reason];
        stage.gone += 1;
        if stage.examples.len() < EXAMPLES {
            stage.examples.push(NamedProvider::from_node(tree.root()));
        }
        // The providers that fail this atom and meet all atoms before it.
        let able = looks
            .list
            .iter()
            .filter(|look| look.fails & up_to(reason) == 1 << reason);
        match atoms.list[reason].test {
            Test::Room(class, _) => {
                let offers = able.filter_map(|look| look.node.stock(class)).map(offer);
                stage.most_free = stage.most_free.max(offers.max());
            }
            Test::Unit(class, asked) => {
                let stocks = able.filter_map(|look| look.node.stock(class));
                let bounds = stocks.filter_map(|stock| Bound::against(&stock.inventory, asked));
                let bounds = stage.detail.bound.into_iter().chain(bounds);
                stage.detail.bound = bounds.reduce(Bound::nearer);
            }
            Test::Required(_) | Test::Root(_, true) if stage.detail.elsewhere.is_none() => {
                stage.detail.elsewhere = atoms.elsewhere(tree, reason);
            }
            _ => {}
        }
        if self.found.with_candidates > 0 {
            return;
        }
        let together = if reason == atoms.list.len() - 1 {
            self.note_short(looks)
        } else {
            0
        };
        self.note_ways(atoms, number, looks);
        let lacks = atoms.lacks(looks, reason);
        let is_named = atoms.names(number) && !mutant!("explain-named-host-forgotten");
        let come_to = atoms.list[reason].atom.kind.progress();
        let count = lacks.atoms.count_ones();
        let shortfall = lacks.shortfall + together;
        let distance = (Reverse(is_named), Reverse(come_to), count, shortfall);
        self.nearest.push((distance, number));
        self.nearest.sort_by_key(|(distance, _)| *distance);
        self.nearest.truncate(NEAREST);
    }

    /// For each class that several groups request, keeps the smallest shortage so far, or discards
    /// it if this tree has enough for all groups together. Returns the share that this tree lacks
    /// in thousandths, summed over the classes.
    fn note_short(&mut self, looks: &TreeCheck<'_>) -> u64 {
        let mut shortfall = 0;
        for (class, largest) in self.shared.iter().zip(&mut self.shorts) {
            let short = class.short(looks);
            let share = |short: &ClassShortage| missing_share(short.most, short.asked);
            shortfall += short.as_ref().map_or(0, share);
            let Some(so_far) = largest else { continue };
            match (short, so_far) {
                (None, _) => *largest = None,
                (Some(short), Some(so_far)) => so_far.most = so_far.most.max(short.most),
                (Some(short), so_far) => *so_far = Some(short),
            }
        }
        shortfall
    }

    /// Records the relaxations that may help a tree.
    fn note_ways(&mut self, atoms: &Atoms<'_>, number: TreeNumber, looks: &TreeCheck<'_>) {
        for way in &mut self.ways {
            if way.may_help(atoms, looks) {
                way.trees.insert(number.0);
            }
        }
    }
}
