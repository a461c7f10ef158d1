//! Names that do not exist: an error, but only if upstream would come to it.
//!
//! Upstream goes group by group and answers with an empty list at the first that has nothing by
//! itself. So if a name is unknown, what stands before it is searched first.

use std::collections::BTreeSet;

use super::budget::StepBudget;
use super::filter::{members, roots};
use super::plan::{Plan, has_any, is_member};
use super::request::{CandidateError, CandidateRequest, RequestGroup};
use super::search::Explorer;
use crate::state::State;
use crate::state::change::TraitId;
use crate::types::{AggregateUuid, Given, TraitName};

/// Where the first error was found: everything before it decides whether it is seen at all.
enum Stage {
    Root,
    Classes(usize),
    Traits(usize),
}

/// Resolves a request; `None` if it certainly has no answer.
pub(super) fn resolve<'a>(
    state: &'a State,
    request: &'a CandidateRequest,
    budget: &mut StepBudget<'_>,
) -> Result<Option<Plan<'a>>, CandidateError> {
    let Some((stage, error)) = first_error(state, request) else {
        return Ok(Plan::build(state, request));
    };
    if nothing_before(state, request, &stage, budget) {
        Ok(None)
    } else {
        Err(error)
    }
}

/// The first thing that a request names and that does not exist.
fn first_error(state: &State, request: &CandidateRequest) -> Option<(Stage, CandidateError)> {
    let unknown = |names: &BTreeSet<Given<TraitName>>| {
        let name = names
            .iter()
            .find(|name| state.trait_given(name).is_none())?;
        Some(CandidateError::UnknownTraits(vec![name.clone()]))
    };
    let root = unknown(&request.root_required).or_else(|| unknown(&request.root_forbidden));
    if let Some(error) = root {
        return Some((Stage::Root, error));
    }
    for (index, group) in request.groups.iter().enumerate() {
        let class = group
            .resources
            .keys()
            .find(|name| state.class_given(name).is_none());
        if let Some(name) = class {
            let error = CandidateError::UnknownResourceClass(name.clone());
            return Some((Stage::Classes(index), error));
        }
        let traits = group
            .required
            .iter()
            .find_map(unknown)
            .or_else(|| unknown(&group.forbidden));
        if let Some(error) = traits {
            return Some((Stage::Traits(index), error));
        }
    }
    None
}

/// Whether something before this stage has no answer alone, so that upstream answers with an
/// empty list and never comes to the error.
fn nothing_before(
    state: &State,
    request: &CandidateRequest,
    stage: &Stage,
    budget: &mut StepBudget<'_>,
) -> bool {
    let index = match stage {
        Stage::Root => return false,
        Stage::Classes(index) | Stage::Traits(index) => *index,
    };
    if !any_root(
        state,
        &request.root_required,
        &request.root_forbidden,
        budget,
    ) {
        return true;
    }
    let group = &request.groups[index];
    request.groups[..index]
        .iter()
        .any(|group| !has_answer_alone(state, request, group, budget))
        || (matches!(stage, Stage::Traits(_))
            && !group.member_of.is_empty()
            && !any_member(state, &group.member_of, budget))
}

fn has_answer_alone(
    state: &State,
    request: &CandidateRequest,
    group: &RequestGroup,
    budget: &mut StepBudget<'_>,
) -> bool {
    let alone = CandidateRequest {
        groups: vec![group.clone()],
        root_required: request.root_required.clone(),
        root_forbidden: request.root_forbidden.clone(),
        nested: true,
        ..CandidateRequest::default()
    };
    let plan = Plan::build(state, &alone);
    plan.is_some_and(|plan| Explorer::new(plan, alone.strategy, budget).next(budget))
}

/// Whether any root has these traits and none of those; all of them exist.
fn any_root(
    state: &State,
    required: &BTreeSet<Given<TraitName>>,
    forbidden: &BTreeSet<Given<TraitName>>,
    budget: &mut StepBudget<'_>,
) -> bool {
    if required.is_empty() && forbidden.is_empty() {
        return true;
    }
    let ids = |names: &BTreeSet<Given<TraitName>>| -> Vec<TraitId> {
        names
            .iter()
            .filter_map(|name| state.trait_given(name))
            .collect()
    };
    let (required, forbidden) = (ids(required), ids(forbidden));
    if required.is_empty() {
        return state
            .trees()
            .take_while(|_| budget.spend(1))
            .any(|(_, tree)| !has_any(&tree.nodes[0], &forbidden));
    }
    roots(state.indexes(), &required, &forbidden)
        .next()
        .is_some()
}

/// Whether any provider is a member of at least one aggregate of each set.
fn any_member(
    state: &State,
    member_of: &[BTreeSet<AggregateUuid>],
    budget: &mut StepBudget<'_>,
) -> bool {
    members(state.indexes(), member_of)
        .filter_map(|number| state.tree(number))
        .take_while(|tree| budget.spend(1 + tree.nodes.len() as u64 / 8))
        .any(|tree| tree.nodes.iter().any(|node| is_member(member_of, node)))
}
