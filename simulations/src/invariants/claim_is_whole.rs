//! After a claim, all its consumers hold what one choice says, or all are as they were: a refusal
//! changes nothing, and leaves no new consumer behind (docs/api.md: claims).

use placement_model::{Outcome, Reply};

use super::decided_claims::DecidedClaims;
use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "a claim is whole";

/// Compares the allocations of each claimant with the choice.
#[derive(Debug, Default)]
pub struct ClaimIsWhole(DecidedClaims);

impl Invariant for ClaimIsWhole {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        let Some(decided) = self.0.next(applied) else {
            return Ok(());
        };
        let whole = match decided.outcome {
            Outcome::Done(Reply::Claimed { choice, .. }) => {
                decided.after.holds_choice(decided.claim, *choice as usize)
            }
            _ => (decided.consumers().iter()).all(|consumer| {
                decided.before.consumer(consumer) == decided.after.consumer(consumer)
            }),
        };
        if whole {
            return Ok(());
        }
        let consumers = decided.consumers();
        let after = consumers.iter().map(|one| decided.after.consumer(one));
        Err(format!(
            "{:?}, but its consumers are {:?} after {:?}",
            decided.outcome,
            after.collect::<Vec<_>>(),
            decided.claim
        ))
    }
}
