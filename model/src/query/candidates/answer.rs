//! Candidates with names, and the summaries that go with them.

use std::collections::{BTreeMap, BTreeSet};

use super::request::{
    AllocationRequest, CandidateRequest, Placed, ProviderSummary, SummaryResource,
};
use crate::state::change::{ProviderId, ResourceClassId};
use crate::state::tree::{Node, Tree, TreeNumber};
use crate::state::{Place, State};
use crate::types::ResourceClassName;

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

impl Candidate {
    pub(super) fn describe(&self, state: &State, request: &CandidateRequest) -> AllocationRequest {
        let mut placed: BTreeMap<ProviderId, Placed> = BTreeMap::new();
        let mut mappings: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for placement in &self.placements {
            let group = &request.groups[placement.group];
            let node = state.node(placement.place);
            let providers = mappings.entry(group.suffix.clone()).or_default();
            if !providers.contains(&node.uuid) {
                providers.push(node.uuid);
            }
            for (name, amount) in placement.taken(state, request) {
                let new = || Placed {
                    provider: node.uuid,
                    resources: BTreeMap::new(),
                };
                let placed = placed.entry(node.id).or_insert_with(new);
                *placed.resources.entry(name.clone()).or_insert(0) += amount;
            }
        }
        AllocationRequest {
            allocations: placed.into_values().collect(),
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
        let only = self
            .class
            .and_then(|class| state.resource_class_name(class));
        request.groups[self.group]
            .resources
            .iter()
            .filter(move |(name, _)| only.is_none_or(|only| only == *name))
            .map(|(name, amount)| (name, *amount))
    }

    /// Whether anything is taken at all.
    fn takes(&self, request: &CandidateRequest) -> bool {
        !request.groups[self.group].resources.is_empty()
    }
}

/// Gathers the providers that an answer has to summarize: from 1.29 all of each tree used, below
/// only those used.
pub struct Summaries<'a> {
    state: &'a State,
    request: &'a CandidateRequest,
    trees: BTreeSet<TreeNumber>,
    used: BTreeSet<(TreeNumber, u32)>,
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

    /// Adds what one candidate uses. Providers of groups without resources are not used.
    pub fn note(&mut self, candidate: &Candidate) {
        for placement in candidate
            .placements
            .iter()
            .filter(|one| one.takes(self.request))
        {
            let Place { tree, node } = placement.place;
            if self.request.nested {
                self.trees.insert(tree);
            } else {
                self.used.insert((tree, node));
            }
        }
    }

    /// The trees of which all providers are to be summarized (from 1.29), in the order of their
    /// creation.
    pub fn trees(&self) -> impl Iterator<Item = TreeNumber> + '_ {
        self.trees.iter().copied()
    }

    /// The summaries, tree by tree.
    pub fn into_list(self) -> Vec<ProviderSummary> {
        let mut list = Vec::new();
        for tree in self
            .trees
            .iter()
            .filter_map(|number| self.state.tree(*number))
        {
            list.extend(
                tree.nodes
                    .iter()
                    .map(|node| summary(self.state, tree, node)),
            );
        }
        for (number, node) in &self.used {
            if let Some(tree) = self.state.tree(*number) {
                list.push(summary(self.state, tree, &tree.nodes[*node as usize]));
            }
        }
        list
    }
}

fn summary(state: &State, tree: &Tree, node: &Node) -> ProviderSummary {
    let resources = node.inventories.iter().filter_map(|stock| {
        let capacity = stock.inventory.capacity();
        let name = state.resource_class_name(stock.class)?;
        Some((
            name.clone(),
            SummaryResource {
                capacity,
                used: stock.used,
            },
        ))
    });
    ProviderSummary {
        provider: node.uuid,
        parent: node.parent.map(|parent| tree.nodes[parent as usize].uuid),
        root: tree.nodes[0].uuid,
        resources: resources.collect(),
        traits: node
            .traits
            .iter()
            .filter_map(|id| state.trait_name(*id).cloned())
            .collect(),
    }
}
