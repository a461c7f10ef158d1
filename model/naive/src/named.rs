//! Answers of the product's search with names, for comparison in tests.

use std::collections::BTreeMap;

use placement_model::State;
use placement_model::query::UnknownName;
use placement_model::query::candidates::{Amount, Candidate, CandidateRequest, Search, Summaries};
use placement_model::state::tree::{Node, Tree};
use placement_model::types::{Capacity, ProviderUuid, ResourceClassName, TraitName};

/// The complete answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Candidates {
    /// The candidates.
    pub allocation_requests: Vec<AllocationRequest>,
    /// The summarized providers, each once.
    pub provider_summaries: Vec<ProviderSummary>,
}

/// One candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationRequest {
    /// Amounts per provider, each provider once.
    pub allocations: Vec<Placed>,
    /// The serving providers by group suffix, resourceless groups included.
    pub mappings: BTreeMap<String, Vec<ProviderUuid>>,
}

/// The amounts taken from one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The UUID of the provider.
    pub provider: ProviderUuid,
    /// Requested units per class.
    pub resources: BTreeMap<ResourceClassName, u64>,
}

/// The summary of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSummary {
    /// The UUID of the provider.
    pub provider: ProviderUuid,
    /// The parent; `None` for a root.
    pub parent: Option<ProviderUuid>,
    /// The root of the provider's tree.
    pub root: ProviderUuid,
    /// The inventories. Below 1.27 the edge omits classes that were not requested.
    pub resources: BTreeMap<ResourceClassName, SummaryResource>,
    /// The traits, oldest first: standard traits, then custom ones in the order of creation. Tests
    /// of clients rely on this order.
    pub traits: Vec<TraitName>,
}

/// One inventory in a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummaryResource {
    /// The truncated capacity in units.
    pub capacity: Capacity,
    /// The units that are allocated.
    pub used: u64,
}

/// Iterates over the answers of a search.
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
/// The request contains an unknown class or trait.
pub fn answers(
    state: &State,
    request: &CandidateRequest,
) -> Result<Vec<AllocationRequest>, UnknownName> {
    let mut search = state.candidates(request, None)?;
    Ok(Answers(&mut search).collect())
}

/// All answers to a request, with provider summaries.
///
/// # Errors
/// The request contains an unknown class or trait.
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
