//! Claims with choices (`POST /placementd/v1/claims`), and invariants that check each of them.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::marker::PhantomData;

use placement_model::command::{Claim, Command};
use placement_model::types::{ConsumerUuid, PartitionId};
use placement_model::{Changes, Outcome, Refusal, Reply, Stamped};
use placement_naive::Naive;

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
pub(super) struct EachClaim<R>(DecidedClaims, PhantomData<R>);

impl<R> Default for EachClaim<R> {
    fn default() -> Self {
        Self(DecidedClaims::default(), PhantomData)
    }
}

impl<R: ClaimRule> Invariant for EachClaim<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        self.0
            .next(applied)
            .map_or(Ok(()), |claim| R::check(&claim))
    }
}

/// Finds the claims that are decided. The first node to apply an entry stands for all nodes: other
/// invariants compare the decisions of nodes.
#[derive(Debug, Default)]
struct DecidedClaims {
    /// The highest index that was looked at.
    looked: u64,
    /// The write ids of decided claims, by which repeated entries are recognized.
    ids: BTreeSet<(u64, u64, u64)>,
}

/// A claim with its outcome.
pub(super) struct DecidedClaim<'a> {
    pub(super) claim: &'a Claim,
    pub(super) outcome: &'a Outcome,
    applied: &'a Applied<'a>,
    before: OnceCell<Naive>,
}

impl DecidedClaims {
    /// The claim of this entry, unless the entry is another command, a repetition, or refused
    /// before the claim was looked at.
    fn next<'a>(&mut self, applied: &'a Applied<'a>) -> Option<DecidedClaim<'a>> {
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
            routes: self.before().route_changes(PartitionId::DEFAULT),
            ..self.applied.stamped.clone()
        };
        matches!(self.before().clone().apply(&stamped), Outcome::Done(_))
    }
}
