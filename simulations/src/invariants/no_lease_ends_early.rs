//! A lease ends by itself only once its time has passed in the log, and nothing else ends by
//! itself: no hold that was renewed, confirmed or made with a due time (docs/api.md: holds).

use placement_model::state::change::RowKey;
use placement_model::types::{ConsumerUuid, HoldEnd};
use placement_model::{Change, Command};

use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "no lease ends early";

/// Checks each consumer that the end of leases deletes, and each change of a hold.
#[derive(Debug, Default)]
pub struct NoLeaseEndsEarly;

impl Invariant for NoLeaseEndsEarly {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        let at = applied.stamped.at;
        match &applied.stamped.command {
            Command::ExpireHolds(_) => {
                let deleted = applied.changes.iter().filter_map(|change| match change {
                    Change::Delete(RowKey::Consumer(consumer)) => Some(consumer),
                    _ => None,
                });
                for consumer in deleted {
                    let hold = applied.before.hold(consumer);
                    let is_over = hold.is_some_and(|hold| match hold.end {
                        HoldEnd::Lease(until) => until <= at,
                        HoldEnd::Due(_) | HoldEnd::Open => false,
                    });
                    if !is_over {
                        return Err(format!("{consumer} with {hold:?} ended at {at:?}"));
                    }
                }
                Ok(())
            }
            Command::RenewHold(renew) => stays_due(applied, &renew.consumer),
            Command::Claim(claim) => {
                let mut claimants = claim.claimants.iter();
                claimants.try_for_each(|one| stays_due(applied, &one.consumer))
            }
            _ => Ok(()),
        }
    }
}

/// Checks that a hold with a due time has not become another kind of hold.
fn stays_due(applied: &Applied<'_>, consumer: &ConsumerUuid) -> Result<(), String> {
    let [before, after] = [applied.before, applied.after].map(|state| {
        let end = state.hold(consumer)?.end;
        Some(matches!(end, HoldEnd::Due(_)))
    });
    if before == Some(true) && after == Some(false) {
        return Err(format!("the hold of {consumer} no longer has a due time"));
    }
    Ok(())
}
