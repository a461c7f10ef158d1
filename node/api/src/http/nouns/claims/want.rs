//! Claims whose choices the node finds.
//!
//! The search is only a proposal: the model checks each choice in the state that the claim changes.
//! So the node searches in its own state, and asks for a newer one only if its own has no answer.
//! If no choice is accepted, the node searches again, in the state of the refusal.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use http::StatusCode;
use placement_model::command::{
    Claim, Claimant, ConsumerGeneration, ConsumerTypeUpdate, ProviderAmounts,
};
use placement_model::query::assignments::{Assignments, Order};
use placement_model::query::candidates::CandidateRequest;
use placement_model::types::{Given, ResourceClassName};
use placement_model::{Outcome, Refusal, State};

use super::{answered, note, submit};
use crate::http::edge::answer::Answer;
use crate::http::edge::claims::ClaimOutcome;
use crate::http::edge::explanations::AnsweredRequest;
use crate::http::edge::request_context::RequestContext;
use crate::http::edge::searches::Searched;
use crate::http::errors::{ApiError, no_candidates};
use crate::http::nouns::unknown_name;
use crate::http::wire::microversion::Microversion;
use placement_base::backend::{Consistency, View, uuid_of_request};

/// Maximum number of further searches for a claim.
const FURTHER_SEARCHES_MAX: u64 = 4;

/// A query from which the node makes choices.
pub(super) struct Want {
    pub(super) query: String,
    pub(super) request: CandidateRequest,
    pub(super) version: Microversion,
    pub(super) order: Order,
}

impl Want {
    fn searched(&self, found: &Assignments) -> Searched {
        Searched {
            query: self.query.clone(),
            candidates: found.candidates,
            limited: found.limited,
            asked: None,
        }
    }
}

/// The proposal of a node for a claim.
enum Proposal {
    /// The current allocations of the claimants.
    Held(Vec<Vec<ProviderAmounts>>),
    /// Choices, if there are any.
    Found(Assignments),
}

/// Searches for choices, and claims one of them. If none is accepted, searches again in the state
/// of the refusal; the last refusal is the answer.
pub(super) async fn take(
    context: &RequestContext,
    mut claim: Claim,
    want: Want,
) -> Result<Answer, ApiError> {
    let (view, proposal) = first_proposal(context, &claim, &want).await?;
    let mut found = match proposal {
        Proposal::Held(held) => return repeat(context, claim, &want, held).await,
        Proposal::Found(found) => found,
    };
    if found.choices.is_empty() {
        let mut searched = want.searched(&found);
        let error = no_candidates(found.served, claim.claimants.len());
        searched.asked = (found.candidates == 0).then(|| {
            Arc::new(AnsweredRequest {
                view,
                request: want.request,
                version: want.version,
            })
        });
        let outcome = ClaimOutcome::NoCandidates;
        note(context, outcome, Some(&error), Some(searched), 0);
        return Err(error);
    }
    // A write must copy the data of a state that a request holds.
    drop(view);
    let mut further = 1..=FURTHER_SEARCHES_MAX;
    loop {
        let searched = want.searched(&found);
        claim.choices = found.choices;
        let written = submit(context, &claim).await?;
        let attempt = match &written.outcome {
            // The claim may be a repetition that the searched state did not show.
            Outcome::Refused(Refusal::ConsumerGenerationConflict { .. }) => {
                if let Some(held) = held(&written.view.state, &claim, &want.request) {
                    return repeat(context, claim, &want, held).await;
                }
                None
            }
            Outcome::Refused(Refusal::ClaimRefused(_) | Refusal::GroupBroken { .. }) => {
                further.next()
            }
            _ => None,
        };
        let again = match attempt {
            Some(attempt) => search(context, &written.view, &claim, &want, attempt).await,
            None => return answered(context, &claim, written, Some(searched)),
        };
        found = match again {
            Ok(found) if !found.choices.is_empty() && !found.breaks_groups => found,
            _ => return answered(context, &claim, written, Some(searched)),
        };
    }
}

/// The proposal from the state of this node or, if that is not enough, from a state as new as the
/// request asks for; with this state.
async fn first_proposal(
    context: &RequestContext,
    claim: &Claim,
    want: &Want,
) -> Result<(View, Proposal), ApiError> {
    let (own, requested) = (proposing(context), context.head.consistency);
    let view = context.view_at(own).await?;
    let proposal = propose(context, &view, claim, want).await;
    let is_unsure = match &proposal {
        Ok(Proposal::Found(found)) => found.choices.is_empty() || found.breaks_groups,
        // The allocations may have been released since.
        Ok(Proposal::Held(_)) => true,
        // A class or a trait may be new.
        Err(error) => error.status == StatusCode::BAD_REQUEST,
    };
    if !is_unsure || requested == own {
        return Ok((view, proposal?));
    }
    let view = context.view().await?;
    let proposal = propose(context, &view, claim, want).await?;
    Ok((view, proposal))
}

/// The consistency of the first state that is searched. The state of this node is enough even if it
/// is a little old, since the claim is checked where it is applied; only a client that names an
/// entry of the log needs one with this entry.
fn proposing(context: &RequestContext) -> Consistency {
    match context.head.consistency {
        session @ Consistency::Session(_) => session,
        _ => Consistency::Local,
    }
}

async fn propose(
    context: &RequestContext,
    view: &View,
    claim: &Claim,
    want: &Want,
) -> Result<Proposal, ApiError> {
    if let Some(held) = held(&view.state, claim, &want.request) {
        return Ok(Proposal::Held(held));
    }
    let found = search(context, view, claim, want, 0).await?;
    Ok(Proposal::Found(found))
}

/// Sends a claim that the claimants already hold; the model decides whether they do.
async fn repeat(
    context: &RequestContext,
    mut claim: Claim,
    want: &Want,
    held: Vec<Vec<ProviderAmounts>>,
) -> Result<Answer, ApiError> {
    claim.choices = vec![held];
    let searched = want.searched(&Assignments {
        candidates: 1,
        limited: true,
        ..Assignments::default()
    });
    let written = submit(context, &claim).await?;
    answered(context, &claim, written, Some(searched))
}

/// What the claimants hold, if all of them are sent as new and hold what the query requests, under
/// this owner and type.
fn held(
    state: &State,
    claim: &Claim,
    request: &CandidateRequest,
) -> Option<Vec<Vec<ProviderAmounts>>> {
    let mut requested: BTreeMap<Given<ResourceClassName>, u64> = BTreeMap::new();
    for (class, amount) in request.groups.iter().flat_map(|group| &group.resources) {
        let sum = requested.entry(class.clone()).or_default();
        *sum = sum.saturating_add(*amount);
    }
    let held = |claimant: &Claimant| {
        let consumer = state.consumer(&claimant.consumer)?;
        let is_type = match &claimant.consumer_type {
            ConsumerTypeUpdate::Keep => true,
            ConsumerTypeUpdate::Set(name) => consumer.consumer_type.as_ref() == Some(name),
        };
        let is_same = is_type
            && claimant.generation == ConsumerGeneration::New
            && consumer.project == claimant.project
            && consumer.user == claimant.user;
        let mut sums: BTreeMap<Given<ResourceClassName>, u64> = BTreeMap::new();
        let mut allocations = Vec::new();
        for holding in consumer.allocations {
            let resources = holding.resources.into_iter();
            let resources: BTreeMap<_, _> = resources
                .map(|(class, amount)| (Given::Valid(class), amount))
                .collect();
            for (class, amount) in &resources {
                *sums.entry(class.clone()).or_default() += amount;
            }
            allocations.push(ProviderAmounts {
                provider: Given::Valid(holding.provider),
                resources,
            });
        }
        (is_same && sums == requested).then_some(allocations)
    };
    claim.claimants.iter().map(held).collect()
}

/// Searches for choices: on the thread of the request if this takes little time.
async fn search(
    context: &RequestContext,
    view: &View,
    claim: &Claim,
    want: &Want,
    attempt: u64,
) -> Result<Assignments, ApiError> {
    let api = context.api();
    let mut request = want.request.clone();
    request.search_max = Some(api.settings.candidates.max).filter(|most| *most > 0);
    let drawn = uuid_of_request(&context.head.request_id).unwrap_or_else(|| api.ids.uuid());
    let order = (want.order, drawn.as_u64_pair().0.wrapping_add(attempt));
    if claim.claimants.len() == 1 {
        let watch = Box::new(|_steps| ControlFlow::Break(()));
        let found = view.state.assignments(claim, &request, order, watch);
        let found = found.map_err(|error| unknown_name(&error, ""))?;
        if !found.interrupted {
            return within_limit(context, found);
        }
    }
    let deadline = api.settings.candidates.deadline;
    let patience = context.patience(context.head.begun, deadline);
    let admission = &context.services.server.admission;
    let turn = admission.searches.turn(patience.left()).await?;
    let (view, claim) = (view.clone(), claim.clone());
    let found = context.compute(move || {
        let _turn = turn;
        let watch = Box::new(|_steps| patience.check());
        let found = view.state.assignments(&claim, &request, order, watch);
        found.map_err(|error| unknown_name(&error, ""))
    });
    let found = found.await?;
    if found.interrupted && found.choices.is_empty() {
        return Err(ApiError::search_ended(format!(
            "The search exceeded its deadline of {} s. Set a limit, or request less.",
            deadline.as_secs_f64()
        )));
    }
    within_limit(context, found)
}

/// Drops the last choices if all together have more allocations than a request may have.
///
/// # Errors
/// 400 if the first choice alone has more.
fn within_limit(context: &RequestContext, mut found: Assignments) -> Result<Assignments, ApiError> {
    let lines = |choice: &Vec<Vec<ProviderAmounts>>| {
        let amounts = choice.iter().flatten();
        amounts.map(|one| one.resources.len()).sum::<usize>()
    };
    if let Some(first) = found.choices.first() {
        context.admit("allocations", lines(first), |limits| limits.allocations)?;
    }
    let most = context.api().settings.limits.allocations;
    let mut sum = 0;
    found.choices.retain(|choice| {
        sum += lines(choice);
        sum <= most
    });
    Ok(found)
}
