//! `Placement-As-Of`: a read of an earlier state. It is reconstructed from the newest state by
//! undoing all later changes.

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
use crate::http::errors::{ApiError, code};
use placement_base::backend::{PlacementIndex, View};

const AS_OF: HeaderName = HeaderName::from_static("placement-as-of");
/// The policy rule that a read of an earlier state needs in addition to the rule of its operation,
/// because it reveals which changes followed.
pub(super) const RULE: &str = "placementd:history";

/// Time limit for undoing the later changes.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);
/// Time limit for waiting in the queue: longer than the read in front may take.
pub(super) const WAIT: Duration = Duration::from_secs(15);

/// A point in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsOf {
    /// After the entry at this index.
    Token(PlacementIndex),
    /// After the last entry that is not later than this time.
    Time(Timestamp),
}

/// Parses the header; `None` if it is missing.
///
/// # Errors
/// 400 if the value is not a token or a time, or if the request is not a `GET`.
pub(super) fn parse(method: &Method, headers: &HeaderMap) -> Result<Option<AsOf>, ApiError> {
    let Some(text) = headers::text(headers, AS_OF) else {
        return Ok(None);
    };
    if method != Method::GET {
        let message = format!("Placement-As-Of is for GET only, and this is {method}");
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

/// Parses a time in RFC 3339 format.
pub(crate) fn parse_time(text: &str) -> Option<Timestamp> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    let micros = time.unix_timestamp_nanos().div_euclid(1_000);
    i64::try_from(micros).ok().map(Timestamp)
}

/// The state at the requested point, reconstructed from `newest`, which must not be earlier.
///
/// # Errors
/// 410 if some of the later changes are no longer retained; 503 if there are too many of them or
/// they cannot be read.
pub(super) fn view(
    newest: View,
    ledger: &Ledger,
    as_of: AsOf,
    patience: &Patience,
) -> Result<View, ApiError> {
    const GONE: &str = "The state at that moment is no longer available";
    let is_later = |index: u64, at: Timestamp| match as_of {
        AsOf::Token(token) => index > token.index,
        AsOf::Time(time) => at > time,
    };
    let mut view = newest;
    let mut from = view.position.index.unwrap_or_default().index;
    // Index of the last entry that is not undone.
    let last = loop {
        let read = ledger.backward(from);
        let entries = read.map_err(|error| ledger.error(&error, code::AS_OF_GONE, GONE))?;
        let Some(oldest) = entries.last() else {
            // All retained entries are undone. Dropped entries may be later than the requested
            // moment, too.
            let floor = ledger.floor();
            if is_later(floor.index, floor.at) {
                return Err(ledger.gone(code::AS_OF_GONE, GONE));
            }
            break floor.index;
        };
        let undone = entries
            .iter()
            .take_while(|entry| is_later(entry.index, entry.at))
            .filter(|entry| ledger.has(entry))
            .flat_map(|entry| entry.undo());
        if !mutant!("before-is-now") {
            view.state.undo(undone.collect());
        }
        if !is_later(oldest.index, oldest.at) {
            let mut kept = entries.iter();
            let last = kept.find(|entry| !is_later(entry.index, entry.at));
            break last.map_or(oldest.index, |entry| entry.index);
        }
        from = oldest.index.saturating_sub(1);
        if patience.check().is_break() {
            let reason = "Too much has changed since that moment to undo it in time";
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
