//! Claims with choices (`POST /placementd/v1/claims`), and invariants that check each of them.

use std::cell::OnceCell;
use std::marker::PhantomData;

use placement_model::command::{Claim, Command};
use placement_model::types::{ConsumerUuid, PartitionId};
use placement_model::{Changes, Outcome, Refusal, Reply, Stamped};
use placement_naive::Naive;

use super::decisions::Decisions;
use super::{Applied, Invariant};

/// A rule for each claim.
pub(super) trait ClaimRule {
    /// Name of the invariant in violations.
    const NAME: &'static str;

    /// Checks a claim.
    ///
    /// # Errors
    /// The violation.
    fn check(claim: &DecidedClaim<'_>) -> Result<(), String>;
}

/// The invariant that all claims keep a rule.
pub(super) struct EachClaim<R>(Decisions, PhantomData<R>);

impl<R> Default for EachClaim<R> {
    fn default() -> Self {
        Self(Decisions::default(), PhantomData)
    }
}

impl<R: ClaimRule> Invariant for EachClaim<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        if !self.0.is_new(applied) {
            return Ok(());
        }
        DecidedClaim::new(applied).map_or(Ok(()), |claim| R::check(&claim))
    }
}

/// A claim with its outcome.
pub(super) struct DecidedClaim<'a> {
    pub(super) claim: &'a Claim,
    pub(super) outcome: &'a Outcome,
    applied: &'a Applied<'a>,
    before: OnceCell<Naive>,
}

impl<'a> DecidedClaim<'a> {
    /// The claim of this entry, unless the entry is another command or refused before the claim was
    /// looked at.
    fn new(applied: &'a Applied<'a>) -> Option<Self> {
        let Command::Claim(claim) = &applied.stamped.command else {
            return None;
        };
        let is_decision = matches!(
            applied.outcome,
            Outcome::Done(_)
                | Outcome::Refused(
                    Refusal::ClaimRefused(_)
                        | Refusal::OverCeiling { .. }
                        | Refusal::GroupBroken { .. }
                        | Refusal::OverLimit(_)
                        | Refusal::ConsumerGenerationConflict { .. }
                )
        );
        is_decision.then(|| Self {
            claim,
            outcome: applied.outcome,
            applied,
            before: OnceCell::new(),
        })
    }
}

impl DecidedClaim<'_> {
    /// The naive model before the claim.
    pub(super) fn before(&self) -> &Naive {
        let rows = || Naive::load(self.applied.before.rows());
        self.before.get_or_init(rows)
    }

    /// The naive model after the claim.
    pub(super) fn after(&self) -> Naive {
        Naive::load(self.applied.after.rows())
    }

    pub(super) fn changes(&self) -> &Changes {
        self.applied.changes
    }

    /// The reply, without the limits that the claim exceeds.
    pub(super) fn reply(&self) -> Option<&Reply> {
        match self.outcome {
            Outcome::Done(Reply::OverLimits { reply, .. }) => Some(&**reply),
            Outcome::Done(reply) => Some(reply),
            _ => None,
        }
    }

    /// The choice that was claimed now.
    pub(super) fn claimed(&self) -> Option<usize> {
        match self.reply() {
            Some(Reply::Claimed {
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
            routes: self.before().route_changes(PartitionId::DEFAULT),
            ..self.applied.stamped.clone()
        };
        matches!(self.before().clone().apply(&stamped), Outcome::Done(_))
    }
}
