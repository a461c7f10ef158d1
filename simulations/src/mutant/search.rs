//! Searches for candidates that go wrong.

use placement_model::query::candidates::CandidateRequest;
use placement_model::{Change, Changes};
use placement_node::doors::SharedState;

use super::Mutant;

/// What is done to a search before it begins.
pub(super) fn before(mutant: Option<Mutant>) -> fn(&mut SharedState, &mut CandidateRequest) {
    match mutant {
        Some(Mutant::OneCandidateTooMany) => |_, request| {
            request.limit = request.limit.map(|limit| limit + 1);
        },
        Some(Mutant::ForbiddenTraitIgnored) => |_, request| {
            for group in &mut request.groups {
                group.forbidden.clear();
            }
        },
        Some(Mutant::ReservedIgnored) => |state, _| {
            let stocks = state.rows().filter_map(|row| match row {
                Change::PutInventory(provider, class, mut row) if row.inventory.reserved > 0 => {
                    row.inventory.reserved = 0;
                    Some(Change::PutInventory(provider, class, row))
                }
                _ => None,
            });
            let stocks: Changes = stocks.collect();
            state.commit(&stocks);
        },
        _ => |_, _| {},
    }
}
