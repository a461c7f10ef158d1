//! The headers in which OpenStack services receive the identity of the caller.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::HeaderName;

use super::super::headers;
use placement_audit::identity::{CallingService, Identity};

pub(super) const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
pub(super) const SERVICE_TOKEN: HeaderName = HeaderName::from_static("x-service-token");
pub(super) const IDENTITY_STATUS: HeaderName = HeaderName::from_static("x-identity-status");
pub(super) const USER: HeaderName = HeaderName::from_static("x-user-id");
pub(super) const ROLES: HeaderName = HeaderName::from_static("x-roles");
const SYSTEM_SCOPE: HeaderName = HeaderName::from_static("openstack-system-scope");
const PROJECT: HeaderName = HeaderName::from_static("x-project-id");
pub(super) const TENANT: HeaderName = HeaderName::from_static("x-tenant-id");
const DOMAIN: HeaderName = HeaderName::from_static("x-domain-id");
const USER_DOMAIN: HeaderName = HeaderName::from_static("x-user-domain-id");
const PROJECT_DOMAIN: HeaderName = HeaderName::from_static("x-project-domain-id");
const IS_ADMIN_PROJECT: HeaderName = HeaderName::from_static("x-is-admin-project");
pub(super) const SERVICE_STATUS: HeaderName = HeaderName::from_static("x-service-identity-status");
const SERVICE_USER: HeaderName = HeaderName::from_static("x-service-user-id");
const SERVICE_USER_DOMAIN: HeaderName = HeaderName::from_static("x-service-user-domain-id");
const SERVICE_PROJECT: HeaderName = HeaderName::from_static("x-service-project-id");
const SERVICE_PROJECT_DOMAIN: HeaderName = HeaderName::from_static("x-service-project-domain-id");
const SERVICE_ROLES: HeaderName = HeaderName::from_static("x-service-roles");

/// Headers that an authenticating proxy sets. It must not forward them from clients.
pub(super) const OF_PROXIES: [HeaderName; 15] = [
    IDENTITY_STATUS,
    USER,
    ROLES,
    SYSTEM_SCOPE,
    PROJECT,
    DOMAIN,
    USER_DOMAIN,
    PROJECT_DOMAIN,
    IS_ADMIN_PROJECT,
    SERVICE_STATUS,
    SERVICE_USER,
    SERVICE_USER_DOMAIN,
    SERVICE_PROJECT,
    SERVICE_PROJECT_DOMAIN,
    SERVICE_ROLES,
];

/// Message of the 401 for a request without a token.
pub(super) const NO_TOKEN: &str = "The request has no X-Auth-Token header. Send one.";

/// Reads the identity from the headers of a Keystone middleware; `text` returns the value of a
/// header.
pub(super) fn identity_in(
    headers: &HeaderMap,
    text: impl Fn(HeaderName) -> Option<String>,
) -> Identity {
    Identity {
        project_id: text(PROJECT),
        domain_id: text(DOMAIN),
        system_scope: text(SYSTEM_SCOPE),
        user_domain_id: text(USER_DOMAIN),
        project_domain_id: text(PROJECT_DOMAIN),
        // Source: oslo.context, `RequestContext.from_environ`.
        is_admin_project: headers::text(headers, IS_ADMIN_PROJECT)
            .is_none_or(|value| value.eq_ignore_ascii_case("true")),
        ..Identity::default()
    }
}

/// Reads the calling service from the headers of a Keystone middleware.
pub(super) fn service_in(headers: &HeaderMap) -> CallingService {
    let text = |name: HeaderName| headers::text(headers, name).filter(|text| !text.is_empty());
    let owned = |name| text(name).map(Cow::into_owned);
    CallingService {
        user_id: owned(SERVICE_USER),
        user_domain_id: owned(SERVICE_USER_DOMAIN),
        project_id: owned(SERVICE_PROJECT),
        project_domain_id: owned(SERVICE_PROJECT_DOMAIN),
        roles: text(SERVICE_ROLES).map_or_else(Vec::new, |given| roles(&given)),
    }
}

/// Splits the value of `X-Roles` or `X-Service-Roles` at commas.
pub(super) fn roles(given: &str) -> Vec<String> {
    let names = given
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}
