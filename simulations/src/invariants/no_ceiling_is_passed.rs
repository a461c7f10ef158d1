//! No claim raises a usage above a ceiling that it carries (docs/api.md: claims).

use super::decided_claims::DecidedClaims;
use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "no ceiling is passed";

/// Counts the usage of each ceiling before and after a claim.
#[derive(Debug, Default)]
pub struct NoCeilingIsPassed(DecidedClaims);

impl Invariant for NoCeilingIsPassed {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        let Some(decided) = self.0.next(applied) else {
            return Ok(());
        };
        for ceiling in &decided.claim.ceilings {
            let [before, after] =
                [&decided.before, &decided.after].map(|naive| naive.counted(ceiling, |_| true));
            if after > ceiling.limit && after > before {
                return Err(format!(
                    "a claim raises the usage from {before} to {after}, above {ceiling:?}"
                ));
            }
        }
        Ok(())
    }
}
