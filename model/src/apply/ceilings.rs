//! Ceilings of a claim: upper limits of the usage of projects.

use std::collections::{BTreeMap, BTreeSet};

use super::consumers::{self, Inspected};
use super::{claims, ensure};
use crate::command::{Ceiling, Claim, Counted};
use crate::mutant;
use crate::outcome::Refusal;
use crate::state::State;
use crate::state::change::Amount;
use crate::state::usage_sums::{Quantity, TypeSum};
use crate::types::{ConsumerTypeName, ConsumerUuid, ProjectId};

/// The ceilings of a claim with the usage before it.
pub(super) struct Ceilings<'a>(Vec<Measured<'a>>);

/// The project and the type of a consumer.
type Account<'a> = (&'a ProjectId, Option<&'a ConsumerTypeName>);

struct Measured<'a> {
    ceiling: &'a Ceiling,
    quantity: Quantity,
    /// The usage without that of the claimants and of the holds that the claim ends.
    used: u64,
    /// The usage of these claimants and holds, which is released.
    released: u64,
}

impl<'a> Ceilings<'a> {
    /// Measures the usage before the claim, which ends the holds of the consumers `ended`.
    pub(super) fn new(state: &State, claim: &'a Claim, ended: &BTreeSet<ConsumerUuid>) -> Self {
        let released = released(state, claim, ended);
        let measured = |ceiling| Measured::new(state, ceiling, &released);
        Self(claim.ceilings.iter().map(measured).collect())
    }

    /// Checks the ceilings for a choice. A claim above a ceiling is accepted unless it requests
    /// more than its claimants release.
    pub(super) fn check(&self, state: &State, choice: &Inspected<'_>) -> Result<(), Refusal> {
        if self.0.is_empty() {
            return Ok(());
        }
        let requested = requested(state, choice);
        for (index, measured) in (0..).zip(&self.0) {
            let requested = measured.sum(&requested);
            let used = measured.used;
            let over = used.saturating_add(requested) > measured.ceiling.limit;
            ensure(!over || requested <= measured.released, || {
                Refusal::OverCeiling {
                    ceiling: index,
                    used,
                    requested,
                    limit: measured.ceiling.limit,
                }
            })?;
        }
        Ok(())
    }
}

impl<'a> Measured<'a> {
    fn new(state: &State, ceiling: &'a Ceiling, released: &Usages<'_>) -> Self {
        let quantity = match &ceiling.of {
            Counted::Units(name) => Quantity::Units(state.class_given(name)),
            Counted::Consumers => Quantity::Consumers,
        };
        let mut measured = Self {
            ceiling,
            quantity,
            used: 0,
            released: 0,
        };
        measured.released = measured.sum(released);
        let released = if mutant!("ceiling-before-release") {
            0
        } else {
            measured.released
        };
        measured.used = measured.usage(state).saturating_sub(released);
        measured
    }

    /// The usage of the projects and types of the ceiling.
    fn usage(&self, state: &State) -> u64 {
        let sums = state.consumers.sums();
        let projects = self.ceiling.projects.iter();
        let of_projects = projects.filter_map(|project| sums.get(project, None));
        let of_each = of_projects.map(|sums| match &self.ceiling.types {
            None => self.quantity.total(sums.values().map(|sum| &**sum)),
            Some(types) => {
                let sums = types.iter().filter_map(|name| Some(&**sums.get(name)?));
                self.quantity.total(sums)
            }
        });
        of_each.fold(0, u64::saturating_add)
    }

    /// The part of these usages that the ceiling counts.
    fn sum(&self, usages: &Usages<'_>) -> u64 {
        let counted = usages.iter().filter(|(account, _)| self.counts(**account));
        self.quantity.total(counted.map(|(_, sum)| sum))
    }

    fn counts(&self, (project, consumer_type): Account<'_>) -> bool {
        let types = self.ceiling.types.as_ref();
        self.ceiling.projects.contains(project)
            && types.is_none_or(|types| types.contains(&consumer_type.cloned()))
    }
}

/// The usage of consumers by project and type.
type Usages<'a> = BTreeMap<Account<'a>, TypeSum>;

/// The usage of the claimants and of the holds that the claim ends, before the claim.
fn released<'a>(state: &'a State, claim: &Claim, ended: &BTreeSet<ConsumerUuid>) -> Usages<'a> {
    let mut usages = Usages::new();
    let claimants = consumers::keep_last_per_key(&claim.claimants, |one| &one.consumer);
    let claimants = claimants.into_iter().map(|one| &one.consumer);
    for consumer in claimants.chain(ended) {
        if let Some(row) = state.consumers.row(consumer) {
            let account = (&row.project, row.consumer_type.as_ref());
            add(&mut usages, account, row.allocations.iter().copied());
        }
    }
    usages
}

/// The usage of the claimants after the claim of a choice.
fn requested<'a>(state: &'a State, choice: &Inspected<'a>) -> Usages<'a> {
    let mut usages = Usages::new();
    for (index, consumer) in choice.consumers.iter().enumerate() {
        let account = (&consumer.project, consumers::new_type(state, consumer));
        let claims = claims::claims_of(&choice.claims, index).iter();
        let held = claims
            .filter(|claim| claim.amount > 0)
            .map(consumers::Claim::held);
        add(&mut usages, account, held);
    }
    usages
}

/// Adds a consumer, unless it has no amounts.
fn add<'a>(usages: &mut Usages<'a>, account: Account<'a>, amounts: impl Iterator<Item = Amount>) {
    let mut amounts = amounts.peekable();
    if amounts.peek().is_none() {
        return;
    }
    let sum = usages.entry(account).or_default();
    sum.consumers += 1;
    for amount in amounts {
        if mutant!("rows-counted-as-consumers") {
            sum.consumers += 1;
        }
        let units = sum.units.entry(amount.class).or_default();
        *units = units.saturating_add(amount.units);
    }
}
