//! Request ids: `req-<uuid>`, one per request: in its response, in its error, in its line of the
//! access log, and at `debug` in the context of all other lines that it causes.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::HeaderName;

use super::headers;
use crate::http::wire::spelling;
use crate::world::UuidSource;

/// The header in which the id of this request is answered, and in which a caller names the
/// request of its own that led to this one.
pub(in crate::http) const HEADER: HeaderName = HeaderName::from_static("x-openstack-request-id");

/// A fresh id.
pub(in crate::http) fn fresh(ids: &dyn UuidSource) -> String {
    format!("req-{}", ids.uuid().as_hyphenated())
}

/// The caller's id, if it gave a well-formed one; the access log has it beside ours.
pub(in crate::http) fn of_caller(headers: &HeaderMap) -> Option<String> {
    let id = headers::text(headers, HEADER).filter(|id| {
        id.strip_prefix("req-")
            .is_some_and(spelling::is_hyphenated_uuid)
    });
    id.map(Cow::into_owned)
}
