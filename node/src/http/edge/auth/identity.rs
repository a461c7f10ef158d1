//! A caller.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::HeaderName;

use super::super::headers;
use super::names::{
    IS_ADMIN_PROJECT, SERVICE_PROJECT, SERVICE_PROJECT_DOMAIN, SERVICE_ROLES, SERVICE_USER,
    SERVICE_USER_DOMAIN,
};

/// A caller, as policy rules see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) user_id: String,
    /// The project the caller acts in.
    pub(crate) project_id: Option<String>,
    /// The domain the caller acts in.
    pub(crate) domain_id: Option<String>,
    /// `all` if the caller acts on the whole system.
    pub(crate) system_scope: Option<String>,
    /// The user's domain.
    pub(crate) user_domain_id: Option<String>,
    /// The project's domain.
    pub(crate) project_domain_id: Option<String>,
    /// Roles as they were given.
    pub(crate) roles: Vec<String>,
    /// Whether the project is the admin project. In a cloud that names none, every project counts as it.
    pub(crate) is_admin_project: bool,
    /// The service that came with the caller's token (`X-Service-Token`), if one did.
    pub(crate) service: CallingService,
}

/// A service that acts for a caller, as policy rules see it; without one, all of it is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CallingService {
    pub(crate) user_id: Option<String>,
    pub(crate) user_domain_id: Option<String>,
    pub(crate) project_id: Option<String>,
    pub(crate) project_domain_id: Option<String>,
    pub(crate) roles: Vec<String>,
}

impl CallingService {
    /// The service that the headers of a Keystone middleware name.
    pub(super) fn in_headers(headers: &HeaderMap) -> Self {
        let text = |name: HeaderName| headers::text(headers, name).filter(|text| !text.is_empty());
        let owned = |name| text(name).map(Cow::into_owned);
        Self {
            user_id: owned(SERVICE_USER),
            user_domain_id: owned(SERVICE_USER_DOMAIN),
            project_id: owned(SERVICE_PROJECT),
            project_domain_id: owned(SERVICE_PROJECT_DOMAIN),
            roles: text(SERVICE_ROLES).map_or_else(Vec::new, |given| roles(&given)),
        }
    }
}

/// What `X-Is-Admin-Project` says. Source: oslo.context, `RequestContext.from_environ`.
pub(super) fn is_admin_project(headers: &HeaderMap) -> bool {
    headers::text(headers, IS_ADMIN_PROJECT).is_none_or(|value| value.eq_ignore_ascii_case("true"))
}

/// The names in `X-Roles` or `X-CallingService-Roles`.
pub(super) fn roles(given: &str) -> Vec<String> {
    let names = given.split(',').map(str::trim);
    let names = names.filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}
