//! A claim of new consumers that already hold one of its choices changes nothing, and its reply
//! names that choice (docs/api.md: claims).

use placement_model::Reply;

use super::decided_claims::{ClaimRule, DecidedClaim};

/// Name of the invariant in violations.
pub const NAME: &str = "repeated is once";

/// Compares each claim with what its consumers held before.
pub struct RepeatedIsOnce;

impl ClaimRule for RepeatedIsOnce {
    const NAME: &'static str = NAME;

    fn check(decided: &DecidedClaim<'_>) -> Result<(), String> {
        let held = decided.before().held_choice(decided.claim);
        let repeated = match decided.reply() {
            Some(Reply::Claimed {
                choice,
                repeated: true,
            }) => Some(*choice),
            _ => None,
        };
        if held != repeated {
            return Err(format!(
                "the consumers hold choice {held:?}, but the outcome is {:?}",
                decided.outcome
            ));
        }
        if held.is_some() && decided.before().rows() != decided.after().rows() {
            return Err(format!("a repetition changed {:?}", decided.changes()));
        }
        Ok(())
    }
}
