//! Candidates in the order of a preference, detached from their search.

use std::collections::BTreeSet;

use super::UnknownName;
use crate::command::ProviderAmounts;
use crate::query::candidates::{Amount, Candidate, CandidateRequest, Outline, Watch};
use crate::state::State;
use crate::state::tree::TreeNumber;

/// Maximum number of candidates that a search compares.
pub(super) const CANDIDATES_MAX: usize = 64;

/// Which candidates are preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Candidates with the smallest share of free capacity after the claim.
    Pack,
    /// Candidates with the largest share of free capacity after the claim.
    Spread,
    /// Random candidates.
    Any,
}

/// Candidates with different allocations, the preferred one first.
pub(super) struct RankedCandidates {
    pub(super) list: Vec<Ranked>,
    /// Number of candidates, including those with equal allocations.
    pub(super) candidates: usize,
    /// Whether the search reached its limit.
    pub(super) limited: bool,
    /// Whether the watch ended the search.
    pub(super) interrupted: bool,
}

/// A candidate that can be claimed.
pub(super) struct Ranked {
    pub(super) amounts: Vec<ProviderAmounts>,
    /// The trees of its providers, except for sharing providers.
    pub(super) trees: BTreeSet<TreeNumber>,
    /// The share of the requested classes that remains free, averaged over the amounts; 0 if the
    /// order does not compare it.
    free: f64,
}

impl State {
    /// Searches for at most `most` candidates, or the limit of the request if that is lower.
    ///
    /// # Errors
    /// The request contains an unknown resource class or trait.
    pub(super) fn ranked(
        &self,
        request: &CandidateRequest,
        (order, most): (Order, usize),
        watch: Watch<'_>,
    ) -> Result<RankedCandidates, UnknownName> {
        let most = request.limit.unwrap_or(most).min(most);
        let mut request = request.clone();
        request.limit = Some(most);
        let mut search = self.candidates(&request, Some(watch))?;
        let outline = search.outline();
        let (mut list, mut amounts) = (Vec::<Ranked>::new(), Vec::new());
        let mut candidates = 0;
        while let Some(candidate) = search.advance() {
            candidates += 1;
            outline.amounts(candidate, &mut amounts);
            let free = match order {
                Order::Any => 0.0,
                Order::Pack | Order::Spread => self.free_share(&outline, candidate, &amounts),
            };
            let ranked = Ranked {
                amounts: outline.provider_amounts(candidate, &amounts),
                trees: self
                    .trees_of_providers(amounts.iter().map(|one| candidate.node(one.part).id)),
                free,
            };
            // Candidates may differ only in their mappings.
            if list.iter().all(|other| other.amounts != ranked.amounts) {
                list.push(ranked);
            }
        }
        match order {
            Order::Any => {}
            Order::Pack => list.sort_by(|one, other| one.free.total_cmp(&other.free)),
            Order::Spread => list.sort_by(|one, other| other.free.total_cmp(&one.free)),
        }
        Ok(RankedCandidates {
            list,
            candidates,
            limited: candidates == most,
            interrupted: search.interrupted(),
        })
    }

    /// The share of the requested classes that a candidate leaves free, averaged over the amounts.
    fn free_share(
        &self,
        outline: &Outline<'_>,
        candidate: &Candidate<'_>,
        amounts: &[Amount],
    ) -> f64 {
        let free = |one: &Amount| {
            let class = self.resource_class_id(outline.classes()[one.class])?;
            let stock = candidate.node(one.part).stock(class)?;
            let taken = stock.used.saturating_add(one.units) as f64;
            Some(1.0 - taken / stock.inventory.capacity_exact())
        };
        let shares: f64 = amounts.iter().filter_map(free).sum();
        shares / amounts.len().max(1) as f64
    }
}
