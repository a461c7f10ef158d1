//! No claim raises a usage above a ceiling that it carries (docs/api.md: claims).

use super::decided_claims::{ClaimRule, DecidedClaim};

/// Name of the invariant in violations.
pub const NAME: &str = "no ceiling is passed";

/// Counts the usage of each ceiling before and after a claim.
pub struct NoCeilingIsPassed;

impl ClaimRule for NoCeilingIsPassed {
    const NAME: &'static str = NAME;

    fn check(decided: &DecidedClaim<'_>) -> Result<(), String> {
        if decided.claim.ceilings.is_empty() {
            return Ok(());
        }
        let (before, after) = (decided.before(), decided.after());
        for ceiling in &decided.claim.ceilings {
            let [before, after] = [before, &after].map(|naive| naive.counted(ceiling, |_| true));
            if after > ceiling.limit && after > before {
                return Err(format!(
                    "a claim raises the usage from {before} to {after}, above {ceiling:?}"
                ));
            }
        }
        Ok(())
    }
}
