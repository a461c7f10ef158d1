//! Errors of a login or of a page.

use axum::http::header::{CONNECTION, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::admin::{Detail, User, response};
use placement_api::keystone::KeystoneUnavailable;
use placement_base::log_messages::log;

/// A response in place of a page. It contains the form for the next attempt.
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) wrong: String,
    /// The user, if Keystone knows it.
    pub(super) user: Option<User>,
    /// The requested action, for the audit record.
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

    /// Adds the requested action.
    pub(super) fn detailed(self, detail: Detail) -> Self {
        Self {
            detail: Some(detail),
            ..self
        }
    }

    /// The response. `name`: the logged-in user, if any.
    pub(super) fn page(self, name: Option<&str>) -> Response {
        let page = placement_web::login(self.status.as_u16(), &self.wrong, name);
        // The form may not have been read to its end.
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

impl From<KeystoneUnavailable> for Refusal {
    fn from(away: KeystoneUnavailable) -> Self {
        log!(KEYSTONE_UNAVAILABLE, reason = %away, "cannot ask Keystone about a user of the pages");
        let wrong = "Keystone is not available now. Retry; operators can use `placementctl web`.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, wrong)
    }
}
