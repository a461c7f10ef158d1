//! After a claim, the members of each of its groups are apart or together by trees, as far as the
//! claim's consumers are concerned (docs/api.md: claims).

use super::decided_claims::{ClaimRule, DecidedClaim};

/// Name of the invariant in violations.
pub const NAME: &str = "groups hold";

/// Finds the trees of all members after a claim.
pub struct GroupsHold;

impl ClaimRule for GroupsHold {
    const NAME: &'static str = NAME;

    fn check(decided: &DecidedClaim<'_>) -> Result<(), String> {
        if decided.claimed().is_none() || decided.claim.groups.is_empty() {
            return Ok(());
        }
        let after = decided.after();
        let consumers = decided.consumers();
        for group in &decided.claim.groups {
            if let Some((root, members)) = after.violation(group, &consumers) {
                return Err(format!("{members} members are in tree {root}: {group:?}"));
            }
        }
        Ok(())
    }
}
