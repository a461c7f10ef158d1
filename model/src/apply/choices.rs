//! `POST /placementd/v1/claims`: the first acceptable choice of a claim.

use std::cmp::Reverse;

use super::ceilings::Ceilings;
use super::groups::Groups;
use super::{Decide, Decision, claims, consumers};
use crate::command::{Claim, Claimant, ConsumerAllocations, ConsumerGeneration, ProviderAmounts};
use crate::outcome::{Refusal, RefusedChoice, Reply, Shortage};
use crate::state::State;
use crate::state::change::Changes;
use crate::types::Timestamp;

/// Checks the generations of all claimants, then each choice in turn: the groups, the ceilings, and
/// then what `POST /allocations` checks. A refusal changes nothing, so that unlike there, new
/// consumers are not created if a provider is unknown.
impl Decide for Claim {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        if let Some(choice) = self.held_choice(state) {
            let repeated = true;
            return Ok((Reply::Claimed { choice, repeated }, Changes::new()));
        }
        for claimant in &self.claimants {
            consumers::check_generation(state, &claimant.consumer, claimant.generation)?;
        }
        let conditions = Conditions {
            groups: Groups::new(state, self),
            ceilings: Ceilings::new(state, self),
        };
        let mut refused = Vec::new();
        for (choice, allocations) in (0..).zip(&self.choices) {
            let allocations = self.allocations(allocations);
            match conditions.claim(state, at, &allocations) {
                Ok(changes) => {
                    let repeated = false;
                    return Ok((Reply::Claimed { choice, repeated }, changes));
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
    /// The choice that the claimants already hold, if all of them are sent as new.
    fn held_choice(&self, state: &State) -> Option<u32> {
        let exists_as_new = |claimant: &Claimant| {
            claimant.generation == ConsumerGeneration::New
                && state.consumers.row(&claimant.consumer).is_some()
        };
        if !self.claimants.iter().all(exists_as_new) {
            return None;
        }
        let is_held = |choice: &Vec<Vec<ProviderAmounts>>| {
            let allocations = self.allocations(choice);
            let mut allocations = allocations.iter();
            allocations.all(|consumer| consumers::holds(state, consumer))
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
    /// Claims a choice, or returns why it is refused.
    fn claim(
        &self,
        state: &State,
        at: Timestamp,
        allocations: &[ConsumerAllocations],
    ) -> Result<Changes, (Refusal, Option<Shortage>)> {
        let alone = |refusal| (refusal, None::<Shortage>);
        let inspected = consumers::inspect(state, at, allocations);
        let inspected = inspected.map_err(|refused| alone(refused.refusal))?;
        self.groups.check(state, &inspected).map_err(alone)?;
        self.ceilings.check(state, &inspected).map_err(alone)?;
        let mut changes = Changes::new();
        let claimed = claims::claim(state, at, &inspected, &mut changes);
        claimed.map_err(|refusal| {
            let shortage = match &refusal {
                Refusal::AllocationCapacity(provider, resource_class) => {
                    claims::shortage(state, &inspected, *provider, resource_class)
                }
                _ => None,
            };
            (refusal, shortage)
        })?;
        Ok(changes)
    }
}

/// The refusal of a claim whose choices are all refused. The choices that passed most checks
/// determine it.
fn refusal(mut refused: Vec<RefusedChoice>) -> Refusal {
    refused.sort_by_key(|one| Reverse(stage(&one.refusal)));
    match refused.first().map(|one| &one.refusal) {
        Some(refusal @ (Refusal::OverCeiling { .. } | Refusal::GroupBroken { .. })) => {
            refusal.clone()
        }
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
        _ => 3,
    }
}
