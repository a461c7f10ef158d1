//! Claims with choices (`POST /placementd/v1/claims`) for the invariants about them, each with the
//! naive model before and after it.

use std::collections::BTreeSet;

use placement_model::command::{Claim, Command};
use placement_model::types::{ConsumerUuid, PartitionId};
use placement_model::{Outcome, Refusal, Reply, Stamped};
use placement_naive::Naive;

use super::Applied;

/// Finds the claims that are decided. The first node to apply an entry stands for all nodes: other
/// invariants compare the decisions of nodes.
#[derive(Debug, Default)]
pub(super) struct DecidedClaims {
    /// The highest index that was looked at.
    looked: u64,
    /// The write ids of decided claims, by which repeated entries are recognized.
    ids: BTreeSet<(u64, u64, u64)>,
}

/// A claim with its outcome.
pub(super) struct DecidedClaim<'a> {
    pub(super) claim: &'a Claim,
    pub(super) outcome: &'a Outcome,
    pub(super) before: Naive,
    pub(super) after: Naive,
    stamped: &'a Stamped,
}

impl DecidedClaims {
    /// The claim of this entry, unless the entry is another command, a repetition, or refused
    /// before the claim was looked at.
    pub(super) fn next<'a>(&mut self, applied: &Applied<'a>) -> Option<DecidedClaim<'a>> {
        if applied.index <= self.looked {
            return None;
        }
        self.looked = applied.index;
        let Command::Claim(claim) = &applied.stamped.command else {
            return None;
        };
        if let Some(id) = applied.stamped.write_id
            && !self.ids.insert((id.origin, id.boot, id.sequence))
        {
            return None;
        }
        let is_decision = matches!(
            applied.outcome,
            Outcome::Done(_)
                | Outcome::Refused(
                    Refusal::ClaimRefused(_)
                        | Refusal::OverCeiling { .. }
                        | Refusal::GroupBroken { .. }
                        | Refusal::ConsumerGenerationConflict { .. }
                )
        );
        is_decision.then(|| DecidedClaim {
            claim,
            outcome: applied.outcome,
            before: Naive::load(applied.before.rows()),
            after: Naive::load(applied.after.rows()),
            stamped: applied.stamped,
        })
    }
}

impl DecidedClaim<'_> {
    /// The choice that was claimed now.
    pub(super) fn claimed(&self) -> Option<usize> {
        match self.outcome {
            Outcome::Done(Reply::Claimed {
                choice,
                repeated: false,
            }) => Some(*choice as usize),
            _ => None,
        }
    }

    pub(super) fn consumers(&self) -> Vec<ConsumerUuid> {
        let claimants = self.claim.claimants.iter();
        claimants.map(|one| one.consumer.clone()).collect()
    }

    /// Whether a claim of this choice alone would be accepted, according to the naive model.
    pub(super) fn fits(&self, choice: usize) -> bool {
        let alone = Claim {
            choices: vec![self.claim.choices[choice].clone()],
            ..self.claim.clone()
        };
        let stamped = Stamped {
            write_id: None,
            command: Command::Claim(alone),
            partition: PartitionId::DEFAULT,
            routes: self.before.route_changes(PartitionId::DEFAULT),
            ..self.stamped.clone()
        };
        matches!(self.before.clone().apply(&stamped), Outcome::Done(_))
    }
}
