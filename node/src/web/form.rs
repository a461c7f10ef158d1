//! Parses the login form.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use tokio::time::timeout;

use super::refusal::Refusal;
use placement_api::keystone::Credentials;
use placement_base::settings::Secret;

/// Maximum size of a form, in bytes.
const BODY_BYTES_MAX: usize = 8 * 1024;
/// Deadline for a browser to send the form.
const BODY_WITHIN: Duration = Duration::from_secs(10);
const KIND: &str = "application/x-www-form-urlencoded";

/// Maximum length of a name in an audit record, in characters; a Keystone user name may have 255.
const SHOWN_MAX: usize = 64;

/// The content of a login form.
pub(super) struct Form {
    /// Name of the user, for display.
    pub(super) name: String,
    pub(super) credentials: Credentials,
}

impl Form {
    /// The user to log in, for the audit record; unverified input.
    pub(super) fn who(&self) -> String {
        let shown = |text: &str| {
            let beginning: String = text.chars().take(SHOWN_MAX).collect();
            format!("{beginning:?}")
        };
        match &self.credentials {
            Credentials::Password {
                user, user_domain, ..
            } => format!("user {} of domain {}", shown(user), shown(user_domain)),
            Credentials::Application { id, .. } => format!("application credential {}", shown(id)),
        }
    }
}

/// Reads and parses the form.
pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Form, Refusal> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    if !kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(KIND)) {
        let wrong = format!("A login must be a form of type {KIND}.");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, wrong));
    }
    let Ok(body) = timeout(BODY_WITHIN, to_bytes(body, BODY_BYTES_MAX)).await else {
        let wrong = "The form did not arrive in time. Retry.";
        return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, wrong));
    };
    let body = body.map_err(|_| {
        let wrong = format!("The form is incomplete or exceeds {BODY_BYTES_MAX} bytes.");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, wrong)
    })?;
    let fields: BTreeMap<_, _> = form_urlencoded::parse(&body).collect();
    let text = |name: &str| fields.get(name).map_or("", Cow::as_ref).to_owned();
    let (user, credential) = (text("user"), text("credential"));
    let credentials = match (user.is_empty(), credential.is_empty()) {
        (false, true) => Credentials::Password {
            user: user.clone(),
            user_domain: text("user_domain"),
            password: Secret::from(text("password")),
            project: text("project"),
            project_domain: text("project_domain"),
        },
        (true, false) => Credentials::Application {
            id: credential.clone(),
            secret: Secret::from(text("secret")),
        },
        _ => {
            let wrong = "Fill in one of the two forms.";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, wrong));
        }
    };
    // One of the two is empty.
    Ok(Form {
        name: user + &credential,
        credentials,
    })
}
