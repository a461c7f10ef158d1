//! A caller, and the headers in which OpenStack's services are told who is calling.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::HeaderName;

use super::super::headers;

pub(super) const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
pub(super) const SERVICE_TOKEN: HeaderName = HeaderName::from_static("x-service-token");
pub(super) const IDENTITY_STATUS: HeaderName = HeaderName::from_static("x-identity-status");
pub(super) const USER: HeaderName = HeaderName::from_static("x-user-id");
pub(super) const ROLES: HeaderName = HeaderName::from_static("x-roles");
pub(super) const SYSTEM_SCOPE: HeaderName = HeaderName::from_static("openstack-system-scope");
pub(super) const PROJECT: HeaderName = HeaderName::from_static("x-project-id");
pub(super) const TENANT: HeaderName = HeaderName::from_static("x-tenant-id");
pub(super) const DOMAIN: HeaderName = HeaderName::from_static("x-domain-id");
pub(super) const USER_DOMAIN: HeaderName = HeaderName::from_static("x-user-domain-id");
pub(super) const PROJECT_DOMAIN: HeaderName = HeaderName::from_static("x-project-domain-id");
pub(super) const IS_ADMIN_PROJECT: HeaderName = HeaderName::from_static("x-is-admin-project");
pub(super) const SERVICE_STATUS: HeaderName = HeaderName::from_static("x-service-identity-status");
pub(super) const SERVICE_USER: HeaderName = HeaderName::from_static("x-service-user-id");
pub(super) const SERVICE_USER_DOMAIN: HeaderName =
    HeaderName::from_static("x-service-user-domain-id");
pub(super) const SERVICE_PROJECT: HeaderName = HeaderName::from_static("x-service-project-id");
pub(super) const SERVICE_PROJECT_DOMAIN: HeaderName =
    HeaderName::from_static("x-service-project-domain-id");
pub(super) const SERVICE_ROLES: HeaderName = HeaderName::from_static("x-service-roles");

/// What is missing where it is missing.
pub(super) const NO_TOKEN: &str = "The request has no X-Auth-Token header. Send one.";

/// A caller, as policy rules see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub user_id: String,
    /// The project the caller acts in.
    pub project_id: Option<String>,
    /// The domain the caller acts in.
    pub domain_id: Option<String>,
    /// `all` if the caller acts on the whole system.
    pub system_scope: Option<String>,
    /// The user's domain.
    pub user_domain_id: Option<String>,
    /// The project's domain.
    pub project_domain_id: Option<String>,
    /// Roles as they were given.
    pub roles: Vec<String>,
    /// Whether the project is the admin project. In a cloud that names none, every project counts as it.
    pub is_admin_project: bool,
    /// The service that came with the caller's token (`X-Service-Token`), if one did.
    pub service: CallingService,
}

/// A service that acts for a caller, as policy rules see it; without one, all of it is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallingService {
    /// The user.
    pub user_id: Option<String>,
    /// The user's domain.
    pub user_domain_id: Option<String>,
    /// The project the service acts in.
    pub project_id: Option<String>,
    /// The project's domain.
    pub project_domain_id: Option<String>,
    /// Roles as they were given.
    pub roles: Vec<String>,
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
