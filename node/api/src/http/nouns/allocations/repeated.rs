//! Repeated writes of allocations.
//!
//! A client that does not receive the answer to a write repeats it, with the same request id. If
//! the first attempt is committed, the consumer's generation has changed and the model refuses the
//! second attempt, although the state is what the client asks for.

use std::collections::BTreeSet;

use placement_model::command::ReplaceAllocations;
use placement_model::mutant;
use placement_model::state::change::RowKey;
use placement_model::types::ConsumerUuid;
use uuid::Uuid;

use crate::http::edge::ledger::Ledger;
use crate::http::edge::request_context::RequestContext;
use placement_base::backend::{AppliedWrite, LedgerUnavailable, uuid_of_request};
use placement_base::log_messages::log;

/// Number of pages of changes to search: some 10,000 claims.
const PAGES_MAX: usize = 64;

/// Whether an earlier attempt of this request is committed, and nothing has changed its consumers
/// since. `written` is the refusal of this attempt.
pub(super) async fn is_done(
    context: &RequestContext,
    written: &AppliedWrite,
    request: ReplaceAllocations,
) -> bool {
    let Some(id) = uuid_of_request(&context.head.request_id) else {
        return false;
    };
    let (view, refused) = (&written.view, written.index.index);
    if mutant!("repeat-is-a-conflict") || !request.is_done_in(&view.state) {
        return false;
    }
    if mutant!("any-equal-state-is-done") {
        return true;
    }
    let ledger = context.ledger(view);
    let newest = view.position.index.unwrap_or_default().index;
    let consumers = request.consumers.into_iter().map(|one| one.consumer);
    let consumers = consumers.collect();
    let searched = context.compute(move || {
        let found = is_last_writer(&ledger, (newest, refused), consumers, id);
        Ok(found.unwrap_or_else(|unavailable| {
            log!(
                REPEATED_CLAIM_UNCLEAR,
                reason = %unavailable,
                "cannot tell whether a refused write of allocations repeats a committed one"
            );
            false
        }))
    });
    searched.await.unwrap_or(false)
}

/// Whether the request with this id made the last change to each of these consumers, before the
/// entry `refused`: the response has that index, so a read at it must show the change.
fn is_last_writer(
    ledger: &Ledger,
    (newest, refused): (u64, u64),
    mut consumers: BTreeSet<ConsumerUuid>,
    id: Uuid,
) -> Result<bool, LedgerUnavailable> {
    let mut from = newest;
    for _ in 0..PAGES_MAX {
        let entries = ledger.backward(from)?;
        let Some(oldest) = entries.last() else {
            break;
        };
        from = oldest.index.saturating_sub(1);
        for entry in entries.iter().filter(|entry| ledger.has(entry)) {
            let is_request = entry.request_id == Some(id) || mutant!("another-id-is-done");
            let is_own = is_request && entry.index < refused;
            for row in &entry.rows {
                if let RowKey::Consumer(consumer) = row.after.key()
                    && consumers.remove(&consumer)
                    && !is_own
                {
                    return Ok(false);
                }
            }
            if consumers.is_empty() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
