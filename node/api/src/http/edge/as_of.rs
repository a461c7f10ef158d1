//! `Placement-As-Of`: a read from the state of an earlier moment, which is the newest with all
//! undone that has come since.

use std::time::Duration;

use http::header::HeaderName;
use http::{HeaderMap, Method};
use placement_model::mutant;
use placement_model::types::Timestamp;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::consistency::parse_token;
use super::headers;
use super::ledger::Ledger;
use super::patience::Patience;
use crate::backend::{PlacementIndex, View};
use crate::http::errors::{ApiError, code};

const AS_OF: HeaderName = HeaderName::from_static("placement-as-of");
/// The policy rule of such a read, in addition to that of its operation: it shows what was changed
/// since.
pub(super) const RULE: &str = "placementd:history";

/// How long it may take to undo what has come since.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);
/// How long it may wait for its turn: longer than another one takes.
pub(super) const WAIT: Duration = Duration::from_secs(15);

/// A moment of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsOf {
    /// After the entry at this place.
    Token(PlacementIndex),
    /// After the last entry that is not later.
    Time(Timestamp),
}

/// Reads which moment the client asks for; `None` if it asks for none.
///
/// # Errors
/// 400 for what is no moment, and for what is no read.
pub(super) fn parse(method: &Method, headers: &HeaderMap) -> Result<Option<AsOf>, ApiError> {
    let Some(text) = headers::text(headers, AS_OF) else {
        return Ok(None);
    };
    if method != Method::GET {
        let message = format!("Placement-As-Of is for GET, and this is {method}");
        return Err(ApiError::bad_consistency(message));
    }
    let token = parse_token(&text).map(AsOf::Token);
    let moment = token.or_else(|| parse_time(text.trim()).map(AsOf::Time));
    moment.map(Some).ok_or_else(|| {
        ApiError::bad_consistency(format!(
            "Placement-As-Of is {text:?}; send the Placement-Index of an earlier response, as in \"7.1234\", or a time, \
             as in \"2026-11-27T06:00:00Z\""
        ))
    })
}

fn parse_time(text: &str) -> Option<Timestamp> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    let micros = time.unix_timestamp_nanos().div_euclid(1_000);
    i64::try_from(micros).ok().map(Timestamp)
}

/// The state of that moment, made of one that is not earlier.
///
/// # Errors
/// 410 if the changes since are not kept any more, and 503 if they are too many or cannot be read.
pub(super) fn view(
    newest: View,
    ledger: &Ledger,
    as_of: AsOf,
    patience: &Patience,
) -> Result<View, ApiError> {
    const GONE: &str = "The state of that moment cannot be made any more";
    let is_later = |index: u64, at: Timestamp| match as_of {
        AsOf::Token(token) => index > token.index,
        AsOf::Time(time) => at > time,
    };
    let mut view = newest;
    let mut from = view.position.index.unwrap_or_default().index;
    // The last entry that is not undone.
    let last = loop {
        let read = ledger.backward(from);
        let entries = read.map_err(|error| ledger.error(&error, code::AS_OF_GONE, GONE))?;
        let Some(oldest) = entries.last() else {
            // All that is kept is undone, and what came before may have been later as well.
            let floor = ledger.floor();
            if is_later(floor.index, floor.at) {
                return Err(ledger.gone(code::AS_OF_GONE, GONE));
            }
            break floor.index;
        };
        let undone = entries
            .iter()
            .take_while(|entry| is_later(entry.index, entry.at));
        let undone = undone.filter(|entry| ledger.has(entry));
        let undone = undone.flat_map(|entry| entry.undo());
        if !mutant!("before-is-now") {
            view.state.undo(undone.collect());
        }
        if !is_later(oldest.index, oldest.at) {
            let mut kept = entries.iter();
            let last = kept.find(|entry| !is_later(entry.index, entry.at));
            break last.map_or(oldest.index, |entry| entry.index);
        }
        from = oldest.index.saturating_sub(1);
        if patience.look().is_break() {
            let reason = "Too much has changed since that moment to be undone in time";
            return Err(ApiError::busy(reason));
        }
    };
    let index = view.position.index.get_or_insert_default();
    index.index = match as_of {
        AsOf::Token(token) => token.index,
        AsOf::Time(_) => last.min(index.index),
    };
    view.position.staleness = None;
    Ok(view)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<AsOf> {
        let mut headers = HeaderMap::new();
        headers.insert(AS_OF, text.parse().unwrap());
        parse(&Method::GET, &headers).unwrap_or_default()
    }

    #[test]
    fn moment_is_a_token_or_a_time() {
        let token = PlacementIndex {
            epoch: 7,
            index: 12,
        };
        assert_eq!(read(" 7.12"), Some(AsOf::Token(token)));
        let noon = Some(AsOf::Time(Timestamp(43_200_000_000)));
        assert_eq!(read("1970-01-01T12:00:00Z"), noon);
        assert_eq!(read("1970-01-01T14:00:00+02:00"), noon);
        assert_eq!(read("1970-01-01T12:00:00.000000999Z"), noon);
        for text in ["", "7", "7.x", "yesterday", "1970-01-01", "43200", "7.12.3"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
