//! Answers of the product's search with names, as tests compare them.

use std::collections::BTreeMap;

use placement_model::State;
use placement_model::query::UnknownName;
use placement_model::query::candidates::{Amount, Candidate, CandidateRequest, Search, Summaries};
use placement_model::state::tree::{Node, Tree};
use placement_model::types::{Capacity, ProviderUuid, ResourceClassName, TraitName};

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Candidates {
    /// The ways to meet the request.
    pub allocation_requests: Vec<AllocationRequest>,
    /// The providers concerned, each once.
    pub provider_summaries: Vec<ProviderSummary>,
}

/// One way to meet the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationRequest {
    /// Amounts per provider, each provider once.
    pub allocations: Vec<Placed>,
    /// Which providers serve which group, by suffix; resourceless groups included.
    pub mappings: BTreeMap<String, Vec<ProviderUuid>>,
}

/// What is taken from one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The provider.
    pub provider: ProviderUuid,
    /// Units per class.
    pub resources: BTreeMap<ResourceClassName, u64>,
}

/// What a client needs to weigh a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSummary {
    /// The provider.
    pub provider: ProviderUuid,
    /// Its parent.
    pub parent: Option<ProviderUuid>,
    /// The root of its tree.
    pub root: ProviderUuid,
    /// Its inventories (the edge leaves out classes not asked for, below 1.27).
    pub resources: BTreeMap<ResourceClassName, SummaryResource>,
    /// Its traits, oldest first: standard ones, then custom ones as they were made. Clients' tests
    /// rely on this order.
    pub traits: Vec<TraitName>,
}

/// One inventory in a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummaryResource {
    /// Units in all.
    pub capacity: Capacity,
    /// Units taken.
    pub used: u64,
}

/// The answers of a search, each as it is found.
pub struct Answers<'s, 'a>(pub &'s mut Search<'a>);

impl Iterator for Answers<'_, '_> {
    type Item = AllocationRequest;

    fn next(&mut self) -> Option<AllocationRequest> {
        let candidate = self.0.next_candidate()?;
        Some(described(self.0, &candidate))
    }
}

/// All answers to a request.
///
/// # Errors
/// A request that names what does not exist.
pub fn answers(
    state: &State,
    request: &CandidateRequest,
) -> Result<Vec<AllocationRequest>, UnknownName> {
    let mut search = state.candidates(request, None)?;
    Ok(Answers(&mut search).collect())
}

/// All answers to a request, with the summaries of the providers concerned.
///
/// # Errors
/// A request that names what does not exist.
pub fn candidates(state: &State, request: &CandidateRequest) -> Result<Candidates, UnknownName> {
    let mut search = state.candidates(request, None)?;
    let outline = search.outline();
    let mut summaries = Summaries::new(request);
    let mut allocation_requests = Vec::new();
    while let Some(candidate) = search.next_candidate() {
        summaries.note(&outline, &candidate);
        allocation_requests.push(described(&search, &candidate));
    }
    search.complete(&mut summaries);
    let nodes = summaries.nodes();
    Ok(Candidates {
        allocation_requests,
        provider_summaries: nodes
            .map(|(tree, node)| summary(state, tree, node))
            .collect(),
    })
}

fn described<'a>(search: &Search<'a>, candidate: &Candidate<'a>) -> AllocationRequest {
    let outline = search.outline();
    let mut amounts = Vec::new();
    outline.amounts(candidate, &mut amounts);
    let id = |one: &Amount| candidate.node(one.part).id;
    let name = |one: &Amount| (outline.classes()[one.class].clone(), one.units);
    let placed = |amounts: &[Amount]| Placed {
        provider: candidate.node(amounts[0].part).uuid,
        resources: amounts.iter().map(name).collect(),
    };
    let together = amounts.chunk_by(|one, other| id(one) == id(other));
    let mappings = outline.suffixes().zip(outline.mappings(candidate));
    AllocationRequest {
        allocations: together.map(placed).collect(),
        mappings: mappings
            .map(|(suffix, parts)| {
                let uuids = parts.map(|part| candidate.node(part).uuid);
                (suffix.to_owned(), uuids.collect())
            })
            .collect(),
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
    let traits = node.traits.iter();
    ProviderSummary {
        provider: node.uuid,
        parent: node.parent.map(|parent| tree.nodes[parent as usize].uuid),
        root: tree.root().uuid,
        resources: resources.collect(),
        traits: traits.map(|id| state.trait_name(*id).clone()).collect(),
    }
}
