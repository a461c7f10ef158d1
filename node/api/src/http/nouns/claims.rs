//! `POST /placementd/v1/claims`: chooses allocations, checks limits and takes them, in one step.

mod parse;
mod want;

use std::collections::BTreeMap;

use placement_model::command::{Claim, Claimant, ConsumerGeneration, Counted, ProviderAmounts};
use placement_model::types::Generation;
use placement_model::{Command, Outcome, Refusal, Reply};
use placement_wire::claims::{self as wire, Claimed};
use placement_wire::upstream::Allocation;

use crate::http::edge::answer::Answer;
use crate::http::edge::claims::ClaimOutcome;
use crate::http::edge::request_context::{RequestContext, reply_to};
use crate::http::edge::searches::Searched;
use crate::http::errors::{ApiError, WriteKind};
use placement_base::backend::{AppliedWrite, View};

/// Answers `POST /placementd/v1/claims`.
pub(crate) async fn create(context: &RequestContext) -> Result<Answer, ApiError> {
    let body = context.body().await?;
    let (claim, want) = parse::claim(context, &body)?;
    match want {
        Some(want) => Box::pin(want::take(context, claim, want)).await,
        None => {
            let written = submit(context, &claim).await?;
            answered(context, &claim, written, None)
        }
    }
}

async fn submit(context: &RequestContext, claim: &Claim) -> Result<AppliedWrite, ApiError> {
    context.write(Command::Claim(claim.clone())).await
}

/// The answer to a claim, which is counted, and noted if it searched or is refused.
fn answered(
    context: &RequestContext,
    claim: &Claim,
    written: AppliedWrite,
    searched: Option<Searched>,
) -> Result<Answer, ApiError> {
    let outcome = outcome(&written.outcome);
    if let Outcome::Refused(Refusal::OverCeiling { ceiling, .. }) = &written.outcome {
        let over = claim.ceilings.get(*ceiling as usize);
        let class = over.and_then(|ceiling| match &ceiling.of {
            Counted::Units(class) => Some(class.as_str()),
            Counted::Consumers => None,
        });
        context.services.server.claims.count_over_ceiling(class);
    }
    let answer = reply_to(written, WriteKind::Claim).and_then(|(reply, view)| match reply {
        Reply::Claimed { choice, repeated } => {
            if repeated {
                context.note_unchanged();
            } else {
                context.services.server.claims.count_choice(choice);
            }
            claimed(claim, choice, repeated, &view).ok_or_else(ApiError::internal)
        }
        _ => Err(ApiError::internal()),
    });
    if let Some(outcome) = outcome {
        let refusal = answer.as_ref().err();
        note(context, outcome, refusal, searched, claim.choices.len());
    }
    answer.map(|claimed| Answer::json(&claimed))
}

/// Counts a claim, and notes it for the list of searches if it searched or is refused.
fn note(
    context: &RequestContext,
    outcome: ClaimOutcome,
    refusal: Option<&ApiError>,
    searched: Option<Searched>,
    choices: usize,
) {
    context.services.server.claims.count(outcome);
    if searched.is_some() || refusal.is_some() {
        let searched = searched.unwrap_or_else(|| Searched::sent(choices));
        context.note_claim(searched, outcome, refusal);
    }
}

/// The outcome of a claim; `None` if the claim was not decided.
fn outcome(outcome: &Outcome) -> Option<ClaimOutcome> {
    Some(match outcome {
        Outcome::Done(Reply::Claimed { repeated: true, .. }) => ClaimOutcome::Repeated,
        Outcome::Done(_) => ClaimOutcome::Claimed,
        Outcome::Refused(Refusal::ClaimRefused(_)) => ClaimOutcome::NoRoom,
        Outcome::Refused(Refusal::OverLimit(_)) => ClaimOutcome::OverLimit,
        Outcome::Refused(Refusal::OverCeiling { .. }) => ClaimOutcome::OverCeiling,
        Outcome::Refused(Refusal::GroupBroken { .. }) => ClaimOutcome::Group,
        Outcome::Refused(Refusal::ConsumerGenerationConflict { .. }) => ClaimOutcome::Conflict,
        _ => return None,
    })
}

/// The body of an accepted claim; `None` if the claim has no such choice.
fn claimed(claim: &Claim, choice: u32, repeated: bool, view: &View) -> Option<Claimed> {
    let taken = claim.choices.get(choice as usize)?;
    let claimants = || claim.claimants.iter();
    let allocations = claimants().zip(taken);
    let generations = claimants().map(|claimant| {
        let Generation(generation) = generation(claimant, repeated, view);
        (claimant.consumer.to_string(), generation)
    });
    Some(Claimed {
        choice,
        allocations: allocations
            .map(|(claimant, taken)| (claimant.consumer.to_string(), shown(taken)))
            .collect(),
        consumer_generations: generations.collect(),
        repeated,
    })
}

/// The generation of a consumer after the claim. The view may show a later state, so it counts only
/// for a repeated claim.
fn generation(claimant: &Claimant, repeated: bool, view: &View) -> Generation {
    let before = match claimant.generation {
        ConsumerGeneration::Expect(generation) => generation,
        ConsumerGeneration::New | ConsumerGeneration::Unchecked => Generation(0),
    };
    let held = repeated.then(|| view.state.consumer(&claimant.consumer));
    let held = held.flatten().map(|consumer| consumer.generation);
    held.unwrap_or_else(|| before.next())
}

fn shown(taken: &[ProviderAmounts]) -> wire::Allocations {
    let allocations = taken.iter().map(|one| {
        let resources = one.resources.iter();
        let allocation = Allocation {
            generation: None,
            resources: resources
                .map(|(class, amount)| (class.to_string(), *amount))
                .collect::<BTreeMap<_, _>>(),
        };
        (one.provider.to_string(), allocation)
    });
    allocations.collect()
}
