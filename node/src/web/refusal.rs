//! Why a user is not logged in, or not shown a page.

use axum::http::header::{CONNECTION, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::admin::{Detail, User, response};
use placement_api::keystone::Away;

/// An answer in place of a page. It is the form for the next attempt.
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) wrong: String,
    /// Who it is, where Keystone knows it.
    pub(super) user: Option<User>,
    /// What was asked for, for the audit record.
    pub(super) detail: Option<Detail>,
}

impl Refusal {
    /// A status, and a sentence for the user.
    pub(super) fn new(status: StatusCode, wrong: impl Into<String>) -> Self {
        Self {
            status,
            wrong: wrong.into(),
            user: None,
            detail: None,
        }
    }

    /// The same with what was asked for.
    pub(super) fn detailed(self, detail: Detail) -> Self {
        Self {
            detail: Some(detail),
            ..self
        }
    }

    /// The answer, to someone who has logged in under this name, if so.
    pub(super) fn page(self, name: Option<&str>) -> Response {
        let page = placement_web::login(self.status.as_u16(), &self.wrong, name);
        // A form may not have been read to its end.
        let mut response = ([(CONNECTION, "close")], response(page)).into_response();
        if matches!(self.status.as_u16(), 429 | 503) {
            let later = HeaderValue::from_static("5");
            response.headers_mut().insert(RETRY_AFTER, later);
        }
        if let Some(user) = self.user {
            response.extensions_mut().insert(user);
        }
        if let Some(detail) = self.detail {
            response.extensions_mut().insert(detail);
        }
        response
    }
}

impl From<Away> for Refusal {
    fn from(away: Away) -> Self {
        tracing::warn!(reason = %away, "Keystone cannot be asked about a user of the pages");
        let wrong = "Keystone cannot be asked now. Try again; operators have `placementctl web`.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, wrong)
    }
}
