//! `POST /placementd/v1/claims`: the first acceptable choice of a claim.

use std::cmp::Reverse;

use super::ceilings::Ceilings;
use super::groups::Groups;
use super::holds::HoldUpdate;
use super::{Decide, Decision, claims, consumers, holds, limits};
use crate::command::{Claim, Claimant, ConsumerAllocations, ConsumerGeneration, ProviderAmounts};
use crate::outcome::{Refusal, RefusedChoice, Reply, Shortage};
use crate::state::State;
use crate::state::change::Changes;
use crate::types::{Hold, LimitExcess, Timestamp};

/// Checks the generations of all claimants, then each choice in turn: the groups, the ceilings, and
/// then what `POST /allocations` checks, the limits last. A refusal changes nothing, so that unlike
/// there, new consumers are not created if a provider is unknown. The holds that are kept for the
/// claimants end with the claim.
impl Decide for Claim {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        if let Some(choice) = self.held_choice(state) {
            let repeated = true;
            return Ok((Reply::Claimed { choice, repeated }, Changes::new()));
        }
        for claimant in &self.claimants {
            consumers::check_generation(state, &claimant.consumer, claimant.generation)?;
        }
        let holds = self.hold_update(state, at)?;
        let conditions = Conditions {
            groups: Groups::new(state, self, &holds.ended),
            ceilings: Ceilings::new(state, self, &holds.ended),
        };
        let mut refused = Vec::new();
        for (choice, allocations) in (0..).zip(&self.choices) {
            let allocations = self.allocations(allocations);
            match conditions.claim(state, at, &allocations, &holds) {
                Ok((changes, excesses)) => {
                    let repeated = false;
                    let reply = Reply::Claimed { choice, repeated };
                    return Ok((limits::report(reply, excesses), changes));
                }
                Err((refusal, shortage)) => refused.push(RefusedChoice {
                    choice,
                    refusal,
                    shortage,
                }),
            }
        }
        Err(refusal(refused).into())
    }
}

impl Claim {
    /// The holds that the claim ends, and the one that it makes.
    ///
    /// # Errors
    /// The hold would replace one with a due time by another kind, or a consumer would have too
    /// many holds.
    fn hold_update(&self, state: &State, at: Timestamp) -> Result<HoldUpdate, Refusal> {
        let claimants = self.claimants.iter().map(|one| &one.consumer);
        let hold = self.hold.as_ref().map(|new| {
            Box::new(Hold {
                kept_for: new.kept_for.clone(),
                end: new.term.from_now(at),
            })
        });
        if let Some(hold) = &hold {
            for claimant in claimants.clone() {
                holds::check_end(state, claimant, hold.end)?;
            }
            holds::check_count(state, hold, self.claimants.len())?;
        }
        Ok(HoldUpdate::giving(
            state,
            claimants.clone(),
            claimants,
            hold,
        ))
    }

    /// The choice that the claimants already hold, if all of them are sent as new and have a hold
    /// for the same consumers as the claim, or none.
    fn held_choice(&self, state: &State) -> Option<u32> {
        let kept_for = self.hold.as_ref().map(|hold| &hold.kept_for);
        let exists_as_new = |claimant: &Claimant| {
            let row = state.consumers.row(&claimant.consumer);
            claimant.generation == ConsumerGeneration::New
                && row.is_some_and(|row| row.hold.as_ref().map(|hold| &hold.kept_for) == kept_for)
        };
        if !self.claimants.iter().all(exists_as_new) {
            return None;
        }
        let is_held = |choice: &Vec<Vec<ProviderAmounts>>| {
            let allocations = self.allocations(choice);
            let mut allocations = allocations.iter();
            allocations.all(|consumer| consumers::has_as_requested(state, consumer))
        };
        let held = (0..).zip(&self.choices).find(|(_, choice)| is_held(choice));
        held.map(|(index, _)| index)
    }

    /// A choice as the allocations of `POST /allocations`.
    fn allocations(&self, choice: &[Vec<ProviderAmounts>]) -> Vec<ConsumerAllocations> {
        let claimants = self.claimants.iter().zip(choice);
        let allocations = claimants.map(|(claimant, allocations)| ConsumerAllocations {
            consumer: claimant.consumer.clone(),
            allocations: allocations.clone(),
            project: claimant.project.clone(),
            user: claimant.user.clone(),
            generation: claimant.generation,
            consumer_type: claimant.consumer_type.clone(),
        });
        allocations.collect()
    }
}

/// The conditions of a claim on each of its choices.
struct Conditions<'a> {
    groups: Groups<'a>,
    ceilings: Ceilings<'a>,
}

impl Conditions<'_> {
    /// Claims a choice and returns the limits that it exceeds, or why it is refused.
    fn claim(
        &self,
        state: &State,
        at: Timestamp,
        allocations: &[ConsumerAllocations],
        holds: &HoldUpdate,
    ) -> Result<(Changes, Vec<LimitExcess>), (Refusal, Option<Shortage>)> {
        let alone = |refusal| (refusal, None::<Shortage>);
        let inspected = consumers::inspect(state, at, allocations);
        let inspected = inspected.map_err(|refused| alone(refused.refusal))?;
        self.groups.check(state, &inspected).map_err(alone)?;
        self.ceilings.check(state, &inspected).map_err(alone)?;
        let mut changes = Changes::new();
        let claimed = claims::claim(state, at, &inspected, holds, &mut changes);
        claimed.map_err(|refusal| {
            let shortage = match &refusal {
                Refusal::AllocationCapacity(provider, resource_class) => {
                    claims::shortage(state, &inspected, holds, *provider, resource_class)
                }
                _ => None,
            };
            (refusal, shortage)
        })?;
        let excesses = limits::check(state, &changes).map_err(alone)?;
        Ok((changes, excesses))
    }
}

/// The refusal of a claim whose choices are all refused. The choices that passed most checks
/// determine it.
fn refusal(mut refused: Vec<RefusedChoice>) -> Refusal {
    refused.sort_by_key(|one| Reverse(stage(&one.refusal)));
    match refused.first().map(|one| &one.refusal) {
        Some(
            refusal @ (Refusal::OverLimit(_)
            | Refusal::OverCeiling { .. }
            | Refusal::GroupBroken { .. }),
        ) => refusal.clone(),
        _ => {
            refused.truncate(RefusedChoice::MOST);
            Refusal::ClaimRefused(refused)
        }
    }
}

/// Number of checks that a refused choice has passed.
fn stage(refusal: &Refusal) -> u8 {
    match refusal {
        Refusal::AllocationProviderNotFound(_) => 0,
        Refusal::GroupBroken { .. } => 1,
        Refusal::OverCeiling { .. } => 2,
        Refusal::OverLimit(_) => 4,
        _ => 3,
    }
}
