//! Candidates, their common outline, and the provider summaries of an answer.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::Plan;
use super::request::CandidateRequest;
use crate::command::ProviderAmounts;
use crate::state::NodePlace;
use crate::state::tree::{Node, Tree, TreeNumber};
use crate::types::{Given, ResourceClassName};

/// A set of providers that together meet a request. The [`Outline`] lists what each provider
/// serves.
#[derive(Debug, Clone, Default)]
pub struct Candidate<'a> {
    pub(super) seats: Vec<Seat<'a>>,
}

/// A provider that serves one part of the request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seat<'a> {
    pub(super) place: NodePlace,
    pub(super) node: &'a Node,
    /// The tree of the provider.
    pub(super) tree: &'a Tree,
}

impl<'a> Candidate<'a> {
    /// Number of parts of the request.
    pub fn parts(&self) -> usize {
        self.seats.len()
    }

    /// The provider that serves a part.
    pub fn node(&self, part: usize) -> &'a Node {
        self.seats[part].node
    }

    /// Memory use in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.seats.len() * size_of::<Seat<'_>>()
    }
}

/// Data that all candidates of a request share, resolved once. A part is a named group, or one
/// class of the unnumbered group.
#[derive(Debug, Default)]
pub struct Outline<'a> {
    classes: Vec<&'a ResourceClassName>,
    /// The demands of each part, each an index into `classes` and an amount.
    taken: Vec<Vec<(usize, u64)>>,
    /// The group suffixes in sorted order, each with its parts.
    groups: Vec<(&'a str, Vec<usize>)>,
}

/// Units of one class from one provider, all parts together.
#[derive(Debug, Clone, Copy)]
pub struct Amount {
    /// A part that the provider serves.
    pub part: usize,
    /// Index into [`Outline::classes`].
    pub class: usize,
    /// Number of units, at least 1.
    pub units: u64,
}

impl<'a> Outline<'a> {
    pub(super) fn new(plan: &Plan<'a>, request: &'a CandidateRequest) -> Self {
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

    /// The requested classes, sorted by name.
    pub fn classes(&self) -> &[&'a ResourceClassName] {
        &self.classes
    }

    /// The suffixes of the groups, sorted.
    pub fn suffixes(&self) -> impl ExactSizeIterator<Item = &'a str> + '_ {
        self.groups.iter().map(|(suffix, _)| *suffix)
    }

    /// The kind of each part. Parts of one kind have equal demands, and each is a separate group.
    /// Swapping the providers of two such parts changes only the mappings.
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

    /// Replaces the contents of `amounts` with the amounts of a candidate, sorted by provider, in
    /// the order of their creation, and then by class.
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

    /// The amounts of a candidate ([`Outline::amounts`]) as a command contains them.
    pub fn provider_amounts(
        &self,
        candidate: &Candidate<'_>,
        amounts: &[Amount],
    ) -> Vec<ProviderAmounts> {
        let provider = |one: &Amount| candidate.node(one.part).uuid;
        let class = |one: &Amount| Given::Valid(self.classes[one.class].clone());
        let taken = amounts.chunk_by(|one, other| provider(one) == provider(other));
        let of_provider = |amounts: &[Amount]| ProviderAmounts {
            provider: Given::Valid(provider(&amounts[0])),
            resources: amounts.iter().map(|one| (class(one), one.units)).collect(),
        };
        taken.map(of_provider).collect()
    }

    /// For each suffix, in sorted order, one part per provider of its group.
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

    /// The seats of the parts with demands. Resourceless groups have no demands.
    pub(super) fn used<'c>(
        &'c self,
        candidate: &'c Candidate<'a>,
    ) -> impl Iterator<Item = &'c Seat<'a>> + 'c {
        let taking = candidate
            .seats
            .iter()
            .zip(&self.taken)
            .filter(|(_, taken)| !taken.is_empty());
        taking.map(|(seat, _)| seat)
    }
}

/// Collects the providers that an answer must summarize. From microversion 1.29 on, these are all
/// providers of each used tree. Before 1.29, only providers that some candidate uses are included,
/// even if that candidate is beyond the limit.
pub struct Summaries<'a> {
    nested: bool,
    /// Sorted and without duplicates after [`Summaries::settle`].
    trees: Vec<(TreeNumber, &'a Tree)>,
    used: BTreeSet<NodePlace>,
}

impl<'a> Summaries<'a> {
    /// Starts an empty collection for the answer to a request.
    pub fn new(request: &CandidateRequest) -> Self {
        Self {
            nested: request.nested,
            trees: Vec::new(),
            used: BTreeSet::new(),
        }
    }

    /// Adds the providers of a candidate of the answer.
    pub fn note(&mut self, outline: &Outline<'a>, candidate: &Candidate<'a>) {
        for seat in outline.used(candidate) {
            let number = seat.place.tree;
            // Consecutive candidates often use the same tree.
            if self.trees.last().is_none_or(|(last, _)| *last != number) {
                self.trees.push((number, seat.tree));
            }
            if !self.nested {
                self.used.insert(seat.place);
            }
        }
    }

    /// Sorts the trees once all candidates of the answer are added.
    pub(super) fn settle(&mut self) {
        if !self.trees.is_sorted_by(|(one, _), (next, _)| one < next) {
            self.trees.sort_unstable_by_key(|(number, _)| *number);
            self.trees.dedup_by_key(|(number, _)| *number);
        }
    }

    /// Adds the providers of a candidate beyond the limit that belong to trees of the answer. Call
    /// it after [`Summaries::settle`].
    pub(super) fn note_beyond(&mut self, outline: &Outline<'a>, candidate: &Candidate<'a>) {
        let used = outline.used(candidate).map(|seat| seat.place);
        let trees = &self.trees;
        let noted = |tree| trees.binary_search_by_key(&tree, |(number, _)| *number);
        self.used
            .extend(used.filter(|place| noted(place.tree).is_ok()));
    }

    /// The providers of the answer's trees that no added candidate uses.
    pub(super) fn unused(&self) -> impl Iterator<Item = NodePlace> + '_ {
        let trees = self.trees.iter();
        let places = trees.flat_map(|(number, tree)| {
            let nodes = (0..).take(tree.nodes.len());
            nodes.map(|node| number.node(node))
        });
        places.filter(move |place| !self.used.contains(place))
    }

    /// The providers to summarize with their trees, in the order of the trees' creation.
    pub fn nodes(&self) -> impl Iterator<Item = (&'a Tree, &'a Node)> + '_ {
        self.trees.iter().flat_map(move |(number, tree)| {
            let shown = (0..)
                .zip(&tree.nodes)
                .filter(move |(node, _)| self.nested || self.used.contains(&number.node(*node)));
            shown.map(move |(_, node)| (*tree, &**node))
        })
    }
}
