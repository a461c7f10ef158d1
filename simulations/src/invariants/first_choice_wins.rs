//! A claim gets the first of its choices that is acceptable, and is refused only if none is
//! (docs/api.md: claims).

use placement_model::{Outcome, Refusal};

use super::decided_claims::{ClaimRule, DecidedClaim};

/// Name of the invariant in violations.
pub const NAME: &str = "the first choice that fits wins";

/// Tries each choice alone in the naive model.
pub struct FirstChoiceWins;

impl ClaimRule for FirstChoiceWins {
    const NAME: &'static str = NAME;

    fn check(decided: &DecidedClaim<'_>) -> Result<(), String> {
        let refused = match decided.outcome {
            // Another invariant is about repetitions.
            Outcome::Done(_) if decided.claimed().is_none() => return Ok(()),
            Outcome::Refused(Refusal::ConsumerGenerationConflict { .. }) => return Ok(()),
            _ => decided.claimed().unwrap_or(decided.claim.choices.len()),
        };
        if let Some(fits) = (0..refused).find(|choice| decided.fits(*choice)) {
            return Err(format!(
                "choice {fits} fits, but the outcome is {:?}",
                decided.outcome
            ));
        }
        match decided.claimed() {
            Some(choice) if !decided.fits(choice) => {
                Err(format!("choice {choice} is claimed, but does not fit"))
            }
            _ => Ok(()),
        }
    }
}
