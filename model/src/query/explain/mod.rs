//! Why a request for allocation candidates has no answer, or few.
//!
//! A request is split into atoms (`atoms`). The funnel is the number of trees that can meet the first of them, the first
//! two, and so on, so each tree is gone at exactly one atom or has a candidate: that one is its reason. What each
//! provider meets by itself is found in one pass over the trees. What has to be met by several together is left to the
//! search (`candidates`), one tree at a time. `relax` finds what could be asked instead.

mod atoms;
mod names;
mod relax;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use serde::Serialize;

pub use atoms::{Atom, AtomKind};

use self::atoms::{Atoms, Look, Looks, up_to};
use self::relax::ways;
use crate::mutant;
use crate::query::NamedProvider;
use crate::query::candidates::{CandidateRequest, Probe, SharingProviders, StepBudget, Watch};
use crate::state::State;
use crate::state::change::ResourceClassId;
use crate::state::indexes::offer;
use crate::state::tree::{Node, Tree, TreeNumber};
use crate::types::{
    AggregateUuid, ConsumerTypeName, ConsumerUuid, Given, ProjectId, ResourceClassName, Timestamp,
    TraitName,
};

/// Trees that are named of those that an atom takes away.
const EXAMPLES: usize = 3;
/// Trees that are shown as nearly right.
const NEAREST: usize = 5;
/// Consumers that are shown of each of them.
const HOLDERS: usize = 3;
/// Holders that are looked at for the largest of them.
const HOLDERS_LOOKED_AT: usize = 1_000;
/// The search for a candidate of one tree takes at most so many steps.
const STEPS_PER_TREE: u64 = 20_000;

/// Why a request has the answer that it has, over one state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// Whether there is any candidate.
    pub verdict: Verdict,
    /// All trees: those that are gone, those with candidates and those that are undecided.
    pub trees: u64,
    /// The trees that are the anchor of a candidate. One that takes from sharing providers alone is a candidate of each
    /// tree that they reach, though the search gives it once.
    pub with_candidates: u64,
    /// The trees of which it was not found out in time.
    pub undecided: u64,
    /// Names that do not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<AbsentName>,
    /// Names that exist, but no provider has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<AbsentName>,
    /// The atoms in their order, with the trees that are left.
    pub funnel: Vec<Stage>,
    /// What would have candidates: one thing less. Only if there are none.
    pub relaxations: Vec<Relaxation>,
    /// Trees that lack little. Only if there are no candidates.
    pub nearest: Vec<Near>,
    /// What it took, in steps of a search.
    #[serde(skip)]
    pub steps: u64,
}

/// Whether there is any candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There is none.
    None,
    /// There are some.
    Some,
    /// The time was up before it was known.
    Undecided,
}

/// A name that a request gives and no provider has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct AbsentName {
    /// A resource class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Given<ResourceClassName>>,
    /// A trait.
    #[serde(rename = "trait", skip_serializing_if = "Option::is_none")]
    pub trait_name: Option<Given<TraitName>>,
    /// An aggregate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<AggregateUuid>,
    /// Names that are spelled nearly so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
}

/// An atom, and what it does to the trees that meet those before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// The atom.
    #[serde(flatten)]
    pub atom: Atom,
    /// Trees that meet it, too, or are undecided.
    pub left: u64,
    /// Trees that do not.
    pub gone: u64,
    /// Of `room`: the most that a provider of those trees could give.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_free: Option<u64>,
    /// The roots of some of those that are gone.
    pub examples: Vec<NamedProvider>,
}

/// A request that asks for less and has candidates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Relaxation {
    /// What it does without.
    pub less: Vec<Less>,
    /// Trees that are the anchor of a candidate then,
    pub trees: u64,
    /// and those of which it was not found out in time.
    #[serde(skip_serializing_if = "is_zero")]
    pub undecided: u64,
    /// The request, as a query of `/allocation_candidates`.
    pub query: String,
    /// The root of one of these trees.
    pub example: NamedProvider,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// An atom that a request does without.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Less {
    /// The atom. What concerns several groups stands in its `group`.
    #[serde(flatten)]
    pub atom: Atom,
    /// Of an amount: the largest that would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enough: Option<u64>,
}

/// A tree that lacks little.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Near {
    /// Its root.
    pub root: NamedProvider,
    /// The atoms that it does not meet.
    pub lacks: Vec<Lack>,
    /// Who holds most of what is missing.
    pub holders: Vec<Holder>,
}

/// An atom that a tree does not meet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lack {
    /// The atom.
    #[serde(flatten)]
    pub atom: Atom,
    /// Of `room`: what is free on the best provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
}

/// A consumer that holds some of what is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// The consumer.
    pub consumer: ConsumerUuid,
    /// Its type.
    #[serde(rename = "type")]
    pub consumer_type: Option<ConsumerTypeName>,
    /// Its project.
    pub project: ProjectId,
    /// The missing class.
    pub class: ResourceClassName,
    /// Units of it.
    pub amount: u64,
    /// When its allocations were written.
    #[serde(serialize_with = "Timestamp::serialize_rfc3339")]
    pub since: Timestamp,
}

/// A request that cannot be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the request has {found} conditions; at most {} can be explained",
    Atoms::MAX
)]
pub struct TooManyAtoms {
    /// How many it has.
    pub found: usize,
}

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
        explanation.steps = explainer.steps;
        Ok(explanation)
    }
}

/// Looks at the trees of a state.
struct Explainer<'a> {
    state: &'a State,
    sharing: SharingProviders<'a, Vec<Look<'a>>>,
    watch: Watch<'a>,
    steps: u64,
    stopped: bool,
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
    fn new(state: &'a State, watch: Watch<'a>, atoms: &Atoms<'a>) -> Self {
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

    fn spend(&mut self, steps: u64) -> bool {
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
    fn prepare<'b>(&mut self, request: &'b CandidateRequest) -> Option<Probe<'b>>
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
    fn probe<'b>(
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
    fn look_over(&mut self, atoms: &Atoms<'a>, number: TreeNumber, looks: &mut Looks<'a>) -> bool {
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

    fn near(&mut self, atoms: &Atoms<'a>, number: TreeNumber) -> Option<Near> {
        let mut looks = Looks::default();
        let tree = self.state.tree(number)?;
        if !self.look_over(atoms, number, &mut looks) {
            return None;
        }
        let (bits, best) = atoms.lacks(&looks);
        let (mut lacks, mut holders) = (Vec::new(), Vec::new());
        let mut seen = BTreeSet::new();
        for (index, atom) in atoms.list.iter().enumerate() {
            let is_last = index == atoms.list.len() - 1;
            if bits & 1 << index == 0 && !(is_last && bits == 0) {
                continue;
            }
            let class = atom.class.as_ref().filter(|_| atom.kind == AtomKind::Room);
            let class = class.and_then(|class| self.state.class_given(class));
            let node = best.iter().find(|look| look.fails & 1 << index != 0);
            let at = class.zip(node).and_then(|(class, look)| {
                let stock = look.node.stock(class)?;
                Some((look.node, class, stock.inventory.free(stock.used)))
            });
            if let Some((node, class, _)) = at
                && seen.insert((node.id, class))
            {
                holders.extend(self.holders(node, class));
            }
            lacks.push(Lack {
                atom: atom.clone(),
                free: at.map(|(.., free)| free),
            });
        }
        Some(Near {
            root: NamedProvider::of(tree.root()),
            lacks,
            holders,
        })
    }

    /// The consumers with most of a class of a provider.
    fn holders(&self, node: &Node, class: ResourceClassId) -> Vec<Holder> {
        let consumers = &self.state.consumers;
        let holder = |consumer: &ConsumerUuid| {
            let row = consumers.row(consumer)?;
            let amounts = row.allocations.of(node.id);
            let amount = amounts.iter().find(|amount| amount.class == class)?;
            Some(Holder {
                consumer: consumer.clone(),
                consumer_type: row.consumer_type.clone(),
                project: row.project.clone(),
                class: self.state.resource_class_name(class).clone(),
                amount: amount.units,
                since: row.updated_at,
            })
        };
        let holders = consumers.holders(node.id).take(HOLDERS_LOOKED_AT);
        let mut holders: Vec<_> = holders.filter_map(holder).collect();
        holders.sort_by_key(|holder| (std::cmp::Reverse(holder.amount), holder.since));
        holders.truncate(HOLDERS);
        holders
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

impl Explanation {
    /// The first cause in a word, and the resource class that it is about.
    pub fn reason(&self) -> (&'static str, Option<&str>) {
        if self.verdict == Verdict::Undecided {
            return ("undecided", None);
        }
        if !self.unknown.is_empty() {
            return ("unknown_name", None);
        }
        if !self.unused.is_empty() {
            return ("unused_name", None);
        }
        let less = self
            .relaxations
            .iter()
            .flat_map(|relaxation| &relaxation.less);
        let less = less.map(|less| &less.atom).next();
        // Without a single one, that with which the last trees are gone.
        let last = self.funnel.iter().filter(|stage| stage.gone > 0);
        let last = last.map(|stage| &stage.atom).next_back();
        less.or(last).map_or(("no_trees", None), |atom| {
            (atom.kind.name(), atom.class.as_ref().map(Given::as_str))
        })
    }
}
