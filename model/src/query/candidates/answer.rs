//! Candidates with names, and the summaries that go with them.

use std::collections::{BTreeMap, BTreeSet};

use super::request::{
    AllocationRequest, CandidateRequest, Placed, ProviderSummary, SummaryResource,
};
use crate::state::change::ResourceClassId;
use crate::state::tree::{Node, Tree, TreeNumber};
use crate::state::{Place, State};
use crate::types::{ProviderUuid, ResourceClassName};

/// One way to meet a request, as places in the state that was searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// In the order of the groups in the request.
    pub placements: Vec<Placement>,
}

/// Which provider serves a group, or one class of the unnumbered group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// Index of the group in the request.
    pub group: usize,
    /// The class, for the unnumbered group.
    pub class: Option<ResourceClassId>,
    /// The provider.
    pub place: Place,
}

/// Units of one class from one provider.
#[derive(Debug, Clone, Copy)]
struct Amount<'a> {
    node: &'a Node,
    class: &'a ResourceClassName,
    /// All groups together.
    amount: u64,
}

impl Candidate {
    /// What is taken, by provider in the order of their creation and then by class.
    fn amounts<'a>(&self, state: &'a State, request: &'a CandidateRequest) -> Vec<Amount<'a>> {
        let mut amounts: Vec<Amount<'a>> = Vec::with_capacity(self.placements.len());
        for placement in &self.placements {
            let node = state.node(placement.place);
            let taken = placement.taken(state, request);
            amounts.extend(taken.map(|(class, amount)| Amount {
                node,
                class,
                amount,
            }));
        }
        amounts.sort_by(|one, other| (one.node.id, one.class).cmp(&(other.node.id, other.class)));
        amounts.dedup_by(|one, kept| {
            let same = one.node.id == kept.node.id && one.class == kept.class;
            if same {
                kept.amount += one.amount;
            }
            same
        });
        amounts
    }

    /// The providers that something is taken from; those of groups without resources are not.
    pub(super) fn used<'a>(
        &'a self,
        request: &'a CandidateRequest,
    ) -> impl Iterator<Item = Place> + 'a {
        let taking = self.placements.iter().filter(move |one| one.takes(request));
        taking.map(|one| one.place)
    }

    pub(super) fn describe(&self, state: &State, request: &CandidateRequest) -> AllocationRequest {
        let amounts = self.amounts(state, request);
        let allocations = amounts.chunk_by(|one, other| one.node.id == other.node.id);
        let placed = |amounts: &[Amount<'_>]| Placed {
            provider: amounts[0].node.uuid,
            resources: amounts
                .iter()
                .map(|one| (one.class.clone(), one.amount))
                .collect(),
        };
        let mut mappings: BTreeMap<String, Vec<ProviderUuid>> = BTreeMap::new();
        for placement in &self.placements {
            let uuid = state.node(placement.place).uuid;
            let suffix = &request.groups[placement.group].suffix;
            match mappings.get_mut(suffix) {
                Some(providers) if providers.contains(&uuid) => {}
                Some(providers) => providers.push(uuid),
                None => drop(mappings.insert(suffix.clone(), vec![uuid])),
            }
        }
        AllocationRequest {
            allocations: allocations.map(placed).collect(),
            mappings,
        }
    }
}

impl Placement {
    /// What is taken from the provider.
    fn taken<'a>(
        &self,
        state: &'a State,
        request: &'a CandidateRequest,
    ) -> impl Iterator<Item = (&'a ResourceClassName, u64)> {
        let only = self.class.map(|class| state.resource_class_name(class));
        request.groups[self.group]
            .resources
            .iter()
            .map(|(name, amount)| {
                let name = name.valid();
                (
                    name.expect("a request with a candidate names classes that are there"),
                    *amount,
                )
            })
            .filter(move |(name, _)| only.is_none_or(|only| only == *name))
    }

    /// Whether anything is taken at all.
    fn takes(&self, request: &CandidateRequest) -> bool {
        !request.groups[self.group].resources.is_empty()
    }
}

/// Gathers the providers that an answer has to summarize: from 1.29 all of each tree used; below,
/// of these trees the providers that some candidate uses, be it one beyond the limit.
pub struct Summaries<'a> {
    state: &'a State,
    request: &'a CandidateRequest,
    trees: BTreeSet<TreeNumber>,
    used: BTreeSet<Place>,
}

impl<'a> Summaries<'a> {
    /// None yet.
    pub fn new(state: &'a State, request: &'a CandidateRequest) -> Self {
        Self {
            state,
            request,
            trees: BTreeSet::new(),
            used: BTreeSet::new(),
        }
    }

    /// Adds what a candidate of the answer uses.
    pub fn note(&mut self, candidate: &Candidate) {
        for place in candidate.used(self.request) {
            self.trees.insert(place.tree);
            if !self.request.nested {
                self.used.insert(place);
            }
        }
    }

    /// Adds what a candidate that is not in the answer uses of the trees that are. To be called
    /// when all of the answer is noted.
    pub fn note_beyond(&mut self, candidate: &Candidate) {
        let used = candidate.used(self.request);
        self.used
            .extend(used.filter(|place| self.trees.contains(&place.tree)));
    }

    /// The providers of the trees noted that no candidate noted uses.
    pub(super) fn unused(&self) -> impl Iterator<Item = Place> + '_ {
        let trees = self.trees.iter().filter_map(move |number| {
            let nodes = self.state.tree(*number)?.nodes.len();
            Some((*number, nodes))
        });
        trees
            .flat_map(|(tree, nodes)| (0..).take(nodes).map(move |node| Place { tree, node }))
            .filter(move |place| !self.used.contains(place))
    }

    /// The trees of which all providers are to be summarized (from 1.29), in the order of their
    /// creation.
    pub fn trees(&self) -> impl Iterator<Item = TreeNumber> + '_ {
        self.trees.iter().copied()
    }

    /// The summaries, tree by tree.
    pub fn each(&self) -> impl Iterator<Item = ProviderSummary> + '_ {
        let trees = self
            .trees
            .iter()
            .filter_map(|number| Some((*number, self.state.tree(*number)?)));
        trees.flat_map(move |(tree, found)| {
            let shown = (0..).zip(&found.nodes).filter(move |(node, _)| {
                let place = Place { tree, node: *node };
                self.request.nested || self.used.contains(&place)
            });
            shown.map(|(_, node)| summary(self.state, found, node))
        })
    }
}

fn summary(state: &State, tree: &Tree, node: &Node) -> ProviderSummary {
    let resources = node.inventories.iter().map(|stock| {
        let summary = SummaryResource {
            capacity: stock.inventory.capacity(),
            used: stock.used,
        };
        (state.resource_class_name(stock.class).clone(), summary)
    });
    ProviderSummary {
        provider: node.uuid,
        parent: node.parent.map(|parent| tree.nodes[parent as usize].uuid),
        root: tree.nodes[0].uuid,
        resources: resources.collect(),
        traits: node
            .traits
            .iter()
            .map(|id| state.trait_row(*id).name.clone())
            .collect(),
    }
}
