//! After a claim, all its consumers hold what one choice says, or all are as they were: a refusal
//! changes nothing, and leaves no new consumer behind (docs/api.md: claims).

use placement_model::Reply;

use super::decided_claims::{ClaimRule, DecidedClaim};

/// Name of the invariant in violations.
pub const NAME: &str = "a claim is whole";

/// Compares the allocations of each claimant with the choice.
pub struct ClaimIsWhole;

impl ClaimRule for ClaimIsWhole {
    const NAME: &'static str = NAME;

    fn check(decided: &DecidedClaim<'_>) -> Result<(), String> {
        let after = decided.after();
        let consumers = decided.consumers();
        let whole = match decided.reply() {
            Some(Reply::Claimed { choice, .. }) => {
                after.holds_choice(decided.claim, *choice as usize)
            }
            _ => (consumers.iter())
                .all(|consumer| decided.before().consumer(consumer) == after.consumer(consumer)),
        };
        if whole {
            return Ok(());
        }
        let after = consumers.iter().map(|one| after.consumer(one));
        Err(format!(
            "{:?}, but its consumers are {:?} after {:?}",
            decided.outcome,
            after.collect::<Vec<_>>(),
            decided.claim
        ))
    }
}
