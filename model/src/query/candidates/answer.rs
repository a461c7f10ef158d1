//! Candidates, what of them is shown, and the summaries that go with them.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::Plan;
use super::request::CandidateRequest;
use crate::state::NodePlace;
use crate::state::tree::{Node, Tree, TreeNumber};
use crate::types::ResourceClassName;

/// One way to meet a request, as providers of the state that was searched. What each of them serves
/// stands in the [`Outline`].
#[derive(Debug, Clone, Default)]
pub struct Candidate<'a> {
    pub(super) seats: Vec<Seat<'a>>,
}

/// A provider that serves one part of the request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seat<'a> {
    pub(super) place: NodePlace,
    pub(super) node: &'a Node,
    /// The one that the provider is in.
    pub(super) tree: &'a Tree,
}

impl<'a> Candidate<'a> {
    /// How many parts the request has.
    pub fn parts(&self) -> usize {
        self.seats.len()
    }

    /// The provider that serves a part.
    pub fn node(&self, part: usize) -> &'a Node {
        self.seats[part].node
    }

    /// The memory that keeping it takes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.seats.len() * size_of::<Seat<'_>>()
    }
}

/// What all candidates of a request have in common, looked up once. A part is a named group, or one
/// class of the unnumbered group.
#[derive(Debug, Default)]
pub struct Outline<'a> {
    classes: Vec<&'a ResourceClassName>,
    /// For each part what it takes: indexes into `classes`, and amounts.
    taken: Vec<Vec<(usize, u64)>>,
    /// The suffixes in their order, each with its parts.
    groups: Vec<(&'a str, Vec<usize>)>,
}

/// Units of one class from one provider, all parts together.
#[derive(Debug, Clone, Copy)]
pub struct Amount {
    /// One that the provider serves.
    pub part: usize,
    /// Index into [`Outline::classes`].
    pub class: usize,
    /// How much.
    pub units: u64,
}

impl<'a> Outline<'a> {
    pub(super) fn of(plan: &Plan<'a>, request: &'a CandidateRequest) -> Self {
        let name = |class: &usize| plan.state.resource_class_name(plan.classes[*class]);
        let mut sorted: Vec<usize> = (0..plan.classes.len()).collect();
        sorted.sort_by_key(name);
        let mut ranks = vec![0; sorted.len()];
        for (rank, class) in sorted.iter().enumerate() {
            ranks[*class] = rank;
        }
        let taken = plan.variables.iter().map(|variable| {
            let demands = plan.kinds[variable.kind].demands.iter();
            let taken = demands.map(|demand| (ranks[demand.class], demand.amount));
            taken.collect()
        });
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (part, variable) in plan.variables.iter().enumerate() {
            let suffix = request.groups[variable.group].suffix.as_str();
            groups.entry(suffix).or_default().push(part);
        }
        Self {
            classes: sorted.iter().map(name).collect(),
            taken: taken.collect(),
            groups: groups.into_iter().collect(),
        }
    }

    /// The classes asked for, in the order of their names.
    pub fn classes(&self) -> &[&'a ResourceClassName] {
        &self.classes
    }

    /// The suffixes of the groups, in their order.
    pub fn suffixes(&self) -> impl ExactSizeIterator<Item = &'a str> + '_ {
        self.groups.iter().map(|(suffix, _)| *suffix)
    }

    /// A kind for each part. Parts of one kind take the same, and each is a group of its own: where
    /// two of them change places, the same is taken from the same providers.
    pub fn kinds(&self) -> Vec<usize> {
        let mut kinds: Vec<usize> = (0..self.taken.len()).collect();
        let mut firsts = BTreeMap::new();
        for (_, parts) in &self.groups {
            if let [part] = parts[..] {
                kinds[part] = *firsts.entry(&self.taken[part]).or_insert(part);
            }
        }
        kinds
    }

    /// Puts what a candidate takes in place of what `amounts` holds: by provider in the order of
    /// their creation, and then by class.
    pub fn amounts(&self, candidate: &Candidate<'a>, amounts: &mut Vec<Amount>) {
        amounts.clear();
        for (part, taken) in self.taken.iter().enumerate() {
            amounts.extend(taken.iter().map(|(class, units)| Amount {
                part,
                class: *class,
                units: *units,
            }));
        }
        let key = |one: &Amount| (candidate.node(one.part).id, one.class);
        amounts.sort_unstable_by_key(key);
        amounts.dedup_by(|one, kept| {
            let same = key(one) == key(kept);
            if same {
                kept.units += one.units;
            }
            same
        });
    }

    /// For each suffix, in their order, the parts of its group: of those that one provider serves,
    /// one.
    pub fn mappings<'c>(
        &'c self,
        candidate: &'c Candidate<'a>,
    ) -> impl Iterator<Item = impl Iterator<Item = usize> + 'c> + 'c {
        self.groups.iter().map(|(_, parts)| {
            let id = |part: &usize| candidate.node(*part).id;
            parts.iter().enumerate().filter_map(move |(at, part)| {
                let seen = parts[..at].iter().any(|before| id(before) == id(part));
                (!seen).then_some(*part)
            })
        })
    }

    /// The seats of those that something is taken from; groups without resources take nothing.
    pub(super) fn used<'c>(
        &'c self,
        candidate: &'c Candidate<'a>,
    ) -> impl Iterator<Item = &'c Seat<'a>> + 'c {
        let taking = candidate.seats.iter().zip(&self.taken);
        let taking = taking.filter(|(_, taken)| !taken.is_empty());
        taking.map(|(seat, _)| seat)
    }
}

/// Gathers the providers that an answer has to summarize: from 1.29 all of each tree used; below,
/// of these trees the providers that some candidate uses, be it one beyond the limit.
pub struct Summaries<'a> {
    nested: bool,
    /// In their order and each once, when all are noted ([`Summaries::settle`]).
    trees: Vec<(TreeNumber, &'a Tree)>,
    used: BTreeSet<NodePlace>,
}

impl<'a> Summaries<'a> {
    /// None yet.
    pub fn new(request: &CandidateRequest) -> Self {
        Self {
            nested: request.nested,
            trees: Vec::new(),
            used: BTreeSet::new(),
        }
    }

    /// Adds what a candidate of the answer uses.
    pub fn note(&mut self, outline: &Outline<'a>, candidate: &Candidate<'a>) {
        for seat in outline.used(candidate) {
            let number = seat.place.tree;
            // Often the next one is the same.
            if self.trees.last().is_none_or(|(last, _)| *last != number) {
                self.trees.push((number, seat.tree));
            }
            if !self.nested {
                self.used.insert(seat.place);
            }
        }
    }

    /// All of the answer is noted.
    pub(super) fn settle(&mut self) {
        if !self.trees.is_sorted_by(|(one, _), (next, _)| one < next) {
            self.trees.sort_unstable_by_key(|(number, _)| *number);
            self.trees.dedup_by_key(|(number, _)| *number);
        }
    }

    /// Adds what a candidate that is not in the answer uses of the trees that are. To be called
    /// when all of the answer is noted.
    pub(super) fn note_beyond(&mut self, outline: &Outline<'a>, candidate: &Candidate<'a>) {
        let used = outline.used(candidate).map(|seat| seat.place);
        let trees = &self.trees;
        let noted = |tree| trees.binary_search_by_key(&tree, |(number, _)| *number);
        self.used
            .extend(used.filter(|place| noted(place.tree).is_ok()));
    }

    /// The providers of the trees noted that no candidate noted uses.
    pub(super) fn unused(&self) -> impl Iterator<Item = NodePlace> + '_ {
        let trees = self.trees.iter();
        let places = trees.flat_map(|(number, tree)| {
            let nodes = (0..).take(tree.nodes.len());
            nodes.map(|node| number.node(node))
        });
        places.filter(move |place| !self.used.contains(place))
    }

    /// The providers to be summarized with their trees, in the order of their trees' creation.
    pub fn nodes(&self) -> impl Iterator<Item = (&'a Tree, &'a Node)> + '_ {
        self.trees.iter().flat_map(move |(number, tree)| {
            let shown = (0..)
                .zip(&tree.nodes)
                .filter(move |(node, _)| self.nested || self.used.contains(&number.node(*node)));
            shown.map(move |(_, node)| (*tree, &**node))
        })
    }
}
