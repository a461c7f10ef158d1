//! `GET /placementd/v1/history`: changes, the latest first.

use std::sync::Arc;

use bytes::Bytes;
use placement_model::ledger::LedgerEntry;
use placement_wire::events::History;
use serde_json::value::{RawValue, to_raw_value};
use uuid::Uuid;

use super::events::{parse_filter, parse_place};
use super::{bad_value, parse_limit};
use crate::http::edge::answer::Answer;
use crate::http::edge::explanations::{DEADLINE, WAIT};
use crate::http::edge::ledger::Ledger;
use crate::http::edge::patience::Patience;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, code, to_json};
use crate::http::wire::changes::{Filter, line};
use placement_base::backend::{Consistency, uuid_of_request};

/// Default number of entries.
const LIMIT_USUAL: usize = 100;
/// Size in bytes at which a page ends: the maximum that a node relays for another.
const PAGE_BYTES: usize = 512 * 1024;

/// `GET /placementd/v1/history`: a page of entries before the token `before`.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    context.refuse_as_of("give before=TOKEN")?;
    let query = context.query()?;
    query.check_once(context.head.route, context.head.version)?;
    let filter = parse_filter(query)?;
    let request = query.last("request_id").map(|text| {
        let right = "give the id of a request, such as req-9a1c0000-0000-4000-8000-000000000000";
        uuid_of_request(text).ok_or_else(|| bad_value("request_id", text, right))
    });
    let limit = query.last("limit").map_or(Ok(LIMIT_USUAL), parse_limit)?;
    let before = query
        .last("before")
        .map(|text| parse_place("before", text))
        .transpose()?;
    let view = match before {
        Some(token) => context.view_at(Consistency::Session(token)).await?,
        None => context.view().await?,
    };
    let newest = view.position.index.unwrap_or_default().index;
    let walk = Walk {
        from: before.map_or(newest, |token| token.index.saturating_sub(1)),
        ledger: context.ledger(&view),
        filter,
        request: request.transpose()?,
        limit,
    };
    // The state is not held during the wait.
    drop(view);
    let explanations = &context.services.server.admission.explanations;
    let turn = explanations.turn(context.head.caller, WAIT).await?;
    let patience = context.patience(context.api().clock.monotonic(), DEADLINE);
    let made = context.compute_idly(move || {
        let _turn = turn;
        walk.page(&patience)
    });
    Ok(Answer::chunks(vec![made.await?]))
}

/// A walk backward through the changes.
struct Walk {
    ledger: Ledger,
    filter: Filter,
    /// Only the changes of the request with this id.
    request: Option<Uuid>,
    limit: usize,
    from: u64,
}

impl Walk {
    /// Builds the answer: the requested number of entries, or fewer if the time expires.
    fn page(&self, patience: &Patience) -> Result<Bytes, ApiError> {
        let mut page = Page::default();
        let mut from = self.from;
        let next = loop {
            let read = self.ledger.backward(from);
            let what = "Earlier changes are not kept any more";
            let read = read.map_err(|error| self.ledger.error(&error, code::EVENTS_GONE, what));
            let entries = read?;
            let Some(oldest) = entries.last() else {
                break None;
            };
            let oldest = oldest.index;
            if let Some(last) = self.put(&mut page, &entries) {
                break Some(last);
            }
            if patience.check().is_break() {
                break Some(oldest);
            }
            from = oldest.saturating_sub(1);
        };
        let floor = self.ledger.floor();
        Ok(to_json(&History {
            history: page.lines,
            oldest: self.token(floor.index).into(),
            oldest_at: floor.at.rfc3339().map(Into::into),
            next: next.map(|next| self.token(next).into()),
        }))
    }

    /// Writes the matching entries. Returns the index of the last one if the page is full.
    fn put(&self, page: &mut Page, entries: &[Arc<LedgerEntry>]) -> Option<u64> {
        let is_asked_for = |entry: &&Arc<LedgerEntry>| {
            self.ledger.has(entry) && (self.request.is_none() || self.request == entry.request_id)
        };
        for entry in entries.iter().filter(is_asked_for) {
            let Some(line) = line(self.ledger.epoch, entry, &self.filter) else {
                continue;
            };
            let line = to_raw_value(&line).expect("lines have string keys and finite numbers");
            page.bytes += line.get().len();
            page.lines.push(line);
            if page.lines.len() >= self.limit || page.bytes >= PAGE_BYTES {
                return Some(entry.index);
            }
        }
        None
    }

    fn token(&self, index: u64) -> String {
        self.ledger.token(index).to_string()
    }
}

/// The entries of a page as JSON, and their length in bytes.
#[derive(Default)]
struct Page {
    lines: Vec<Box<RawValue>>,
    bytes: usize,
}
