//! After a claim, the members of each of its groups are apart or together by trees, as far as the
//! claim's consumers are concerned (docs/api.md: claims).

use super::decided_claims::DecidedClaims;
use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "groups hold";

/// Finds the trees of all members after a claim.
#[derive(Debug, Default)]
pub struct GroupsHold(DecidedClaims);

impl Invariant for GroupsHold {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        let Some(decided) = self.0.next(applied) else {
            return Ok(());
        };
        if decided.claimed().is_none() {
            return Ok(());
        }
        let consumers = decided.consumers();
        for group in &decided.claim.groups {
            if let Some((root, members)) = decided.after.violation(group, &consumers) {
                return Err(format!("{members} members are in tree {root}: {group:?}"));
            }
        }
        Ok(())
    }
}
