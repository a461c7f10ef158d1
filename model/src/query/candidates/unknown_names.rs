//! Handling of unknown names. An unknown name is an error only if upstream would evaluate it.
//!
//! Upstream evaluates group by group and returns an empty list at the first group that has no
//! answer by itself. If a name is unknown, the groups before it are therefore searched first.

use std::collections::BTreeSet;

use super::budget::StepBudget;
use super::filter::roots;
use super::plan::{Plan, has_any};
use super::request::{CandidateRequest, RequestGroup};
use super::search::Explorer;
use crate::query::UnknownName;
use crate::query::tree_filter::with_any_members;
use crate::state::State;
use crate::state::change::TraitId;
use crate::types::{AggregateUuid, Given, TraitName};

/// Resolves a request; `None` if the request certainly has no answer.
pub(super) fn resolve<'a>(
    state: &'a State,
    request: &'a CandidateRequest,
    budget: &mut StepBudget<'_>,
) -> Result<Option<Plan<'a>>, UnknownName> {
    let CandidateRequest {
        groups,
        root_required,
        root_forbidden,
        ..
    } = request;
    let unknown = [root_required, root_forbidden].into_iter();
    if let Some(error) = unknown
        .flatten()
        .find_map(|name| unknown_trait(state, name))
    {
        return Err(error);
    }
    let is_wrong = |group: &RequestGroup| {
        unknown_class(state, group).is_some() || unknown_trait_of(state, group).is_some()
    };
    let Some(first) = groups.iter().position(is_wrong) else {
        return Ok(Plan::build(state, request));
    };
    let mut before = groups[..first].iter();
    let group = &groups[first];
    if !any_root(state, root_required, root_forbidden, budget)
        || !before.all(|group| has_answer_alone(state, request, group, budget))
    {
        return Ok(None);
    }
    if let Some(error) = unknown_class(state, group) {
        return Err(error);
    }
    if !group.member_of.is_empty() && !any_member(state, &group.member_of, budget) {
        return Ok(None);
    }
    unknown_trait_of(state, group).map_or(Ok(None), Err)
}

fn unknown_class(state: &State, group: &RequestGroup) -> Option<UnknownName> {
    let mut names = group.resources.keys();
    let name = names.find(|name| state.class_given(name).is_none())?;
    Some(UnknownName::ResourceClass(name.clone()))
}

fn unknown_trait(state: &State, name: &Given<TraitName>) -> Option<UnknownName> {
    let is_unknown = state.trait_given(name).is_none();
    is_unknown.then(|| UnknownName::Traits(vec![name.clone()]))
}

fn unknown_trait_of(state: &State, group: &RequestGroup) -> Option<UnknownName> {
    let mut names = group.required.iter().flatten().chain(&group.forbidden);
    names.find_map(|name| unknown_trait(state, name))
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

/// Whether any root has all `required` and none of the `forbidden` traits, which must exist.
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
        let ids = names.iter().filter_map(|name| state.trait_given(name));
        ids.collect()
    };
    let (required, forbidden) = (ids(required), ids(forbidden));
    if required.is_empty() {
        let mut trees = state.trees().take_while(|_| budget.spend(1));
        return trees.any(|(_, tree)| !has_any(tree.root(), &forbidden));
    }
    let mut roots = roots(state.indexes(), &required, &forbidden);
    roots.next().is_some()
}

/// Whether any provider is a member of at least one aggregate of each set.
fn any_member(
    state: &State,
    member_of: &[BTreeSet<AggregateUuid>],
    budget: &mut StepBudget<'_>,
) -> bool {
    with_any_members(state.indexes(), member_of)
        .filter_map(|number| state.tree(number))
        .take_while(|tree| budget.spend(1 + tree.nodes.len() as u64 / 8))
        .any(|tree| tree.nodes.iter().any(|node| node.is_member(member_of)))
}
