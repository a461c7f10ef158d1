//! Holds.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::command::{Claim, ConsumerAllocations, RenewHold};
use placement_model::outcome::{Refusal, Reply};
use placement_model::types::{ConsumerUuid, Hold, HoldEnd, HoldTerm, Timestamp};

use super::{ApplyResult, Naive};

/// The effect of a write of allocations on holds.
#[derive(Default)]
pub(super) struct HoldUpdate {
    /// The consumers whose holds end.
    pub(super) ended: BTreeSet<ConsumerUuid>,
    /// The hold of each written consumer; `None` keeps it.
    pub(super) hold: Option<Option<Hold>>,
}

impl Naive {
    /// The effect of `POST /allocations`, of whose entries for a consumer the last one counts.
    pub(super) fn hold_update(&self, consumers: &[ConsumerAllocations]) -> HoldUpdate {
        let last: BTreeMap<_, _> = consumers
            .iter()
            .map(|one| (&one.consumer, !one.allocations.is_empty()))
            .collect();
        let given: Vec<_> = last
            .iter()
            .filter(|(_, given)| **given)
            .map(|(one, _)| *one)
            .collect();
        let written: Vec<_> = last.into_keys().collect();
        HoldUpdate {
            ended: self.holds_for(&given, &written),
            hold: Some(None),
        }
    }

    /// The effect of a claim.
    pub(super) fn claimed_holds(
        &self,
        at: Timestamp,
        claim: &Claim,
    ) -> Result<HoldUpdate, Refusal> {
        let claimants: Vec<_> = claim.claimants.iter().map(|one| &one.consumer).collect();
        let hold = claim.hold.as_ref().map(|new| Hold {
            kept_for: new.kept_for.clone(),
            end: end(new.term, at),
        });
        if let Some(hold) = &hold {
            for claimant in &claimants {
                let old = self
                    .consumers
                    .get(claimant)
                    .and_then(|row| row.hold.as_ref());
                if old.is_some_and(|old| is_due(old) && !is_due(hold)) {
                    return Err(Refusal::HoldIsDue((*claimant).clone()));
                }
            }
            for consumer in &hold.kept_for {
                let others = self.consumers.values().filter_map(|row| row.hold.as_ref());
                let others = others.filter(|other| other.kept_for.contains(consumer));
                if others.count() + claimants.len() > 100 {
                    return Err(Refusal::TooManyHolds(consumer.clone()));
                }
            }
        }
        Ok(HoldUpdate {
            ended: self.holds_for(&claimants, &claimants),
            hold: Some(hold),
        })
    }

    fn holds_for(
        &self,
        given: &[&ConsumerUuid],
        written: &[&ConsumerUuid],
    ) -> BTreeSet<ConsumerUuid> {
        let mut ended = BTreeSet::new();
        for (uuid, row) in &self.consumers {
            let kept_for = |hold: &Hold| given.iter().any(|one| hold.kept_for.contains(*one));
            if row.hold.as_ref().is_some_and(kept_for) && !written.contains(&uuid) {
                ended.insert(uuid.clone());
            }
        }
        ended
    }

    pub(super) fn end_holds(&mut self, ended: &BTreeSet<ConsumerUuid>) {
        self.consumers.retain(|uuid, _| !ended.contains(uuid));
        self.allocations
            .retain(|(holder, _, _), _| !ended.contains(holder));
    }

    pub(super) fn renew_hold(&mut self, at: Timestamp, renew: &RenewHold) -> ApplyResult {
        let RenewHold { consumer, term } = renew;
        let row = self.consumers.get_mut(consumer);
        let hold = row.and_then(|row| row.hold.as_mut());
        let hold = hold.ok_or_else(|| Refusal::HoldNotFound(consumer.clone()))?;
        if is_due(hold) && !matches!(term, HoldTerm::Due(_)) {
            return Err(Refusal::HoldIsDue(consumer.clone()));
        }
        hold.end = end(*term, at);
        Ok(Reply::Done)
    }

    /// Ends the 100 earliest leases that are over.
    pub(super) fn expire_holds(&mut self, at: Timestamp) -> ApplyResult {
        let mut over = Vec::new();
        for (uuid, row) in &self.consumers {
            if let Some(Hold {
                end: HoldEnd::Lease(end),
                ..
            }) = row.hold
                && end <= at
            {
                over.push((end, uuid.clone()));
            }
        }
        over.sort();
        over.truncate(100);
        self.end_holds(&over.into_iter().map(|(_, uuid)| uuid).collect());
        Ok(Reply::Done)
    }
}

fn is_due(hold: &Hold) -> bool {
    matches!(hold.end, HoldEnd::Due(_))
}

fn end(term: HoldTerm, at: Timestamp) -> HoldEnd {
    match term {
        HoldTerm::Lease { seconds } => HoldEnd::Lease(Timestamp(
            at.0.saturating_add(i64::from(seconds) * 1_000_000),
        )),
        HoldTerm::Due(due) => HoldEnd::Due(due),
        HoldTerm::Open => HoldEnd::Open,
    }
}
