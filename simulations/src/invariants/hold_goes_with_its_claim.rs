//! A write that gives a consumer allocations ends the holds that are kept for it, all of them and
//! no others; a refused write ends none (docs/api.md: holds).

use std::collections::BTreeSet;

use placement_model::command::{Claim, ReplaceAllocations};
use placement_model::query::consumers::ConsumerFilter;
use placement_model::types::{ConsumerUuid, Hold};
use placement_model::{Command, Outcome, Reply, State};

use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "a hold goes with its claim";

/// Compares the holds before and after each write of allocations.
#[derive(Debug, Default)]
pub struct HoldGoesWithItsClaim;

impl Invariant for HoldGoesWithItsClaim {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        let (written, given): (BTreeSet<&ConsumerUuid>, BTreeSet<&ConsumerUuid>) =
            match &applied.stamped.command {
                Command::ReplaceAllocations(ReplaceAllocations { consumers }) => {
                    let given = consumers.iter().filter(|one| !one.allocations.is_empty());
                    (
                        consumers.iter().map(|one| &one.consumer).collect(),
                        given.map(|one| &one.consumer).collect(),
                    )
                }
                Command::Claim(Claim { claimants, .. }) => {
                    let all: BTreeSet<_> = claimants.iter().map(|one| &one.consumer).collect();
                    (all.clone(), all)
                }
                _ => return Ok(()),
            };
        let is_done = match applied.outcome {
            Outcome::Done(Reply::Claimed { repeated, .. }) => !repeated,
            Outcome::Done(_) => !applied.changes.is_empty(),
            _ => false,
        };
        // A write that was executed before changes nothing.
        let is_done = is_done && applied.before != applied.after;
        for (holder, hold) in holds(applied.before) {
            if written.contains(&holder) {
                continue;
            }
            let is_kept_for = hold.kept_for.iter().any(|one| given.contains(one));
            let remains = applied.after.hold(&holder) == Some(&hold);
            if remains == (is_done && is_kept_for) {
                let done = if remains { "remains" } else { "ended" };
                return Err(format!(
                    "the hold {hold:?} of {holder} {done}, but {:?} after {:?}",
                    applied.outcome, applied.stamped
                ));
            }
        }
        Ok(())
    }
}

fn holds(state: &State) -> Vec<(ConsumerUuid, Hold)> {
    let filter = ConsumerFilter {
        held: true,
        ..ConsumerFilter::default()
    };
    let page = state.consumers(&filter, None, usize::MAX, usize::MAX);
    let holds = page.consumers.into_iter();
    holds
        .filter_map(|one| Some((one.uuid, one.hold?)))
        .collect()
}
