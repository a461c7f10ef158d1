//! The headers in which OpenStack's services are told who is calling.

use http::header::HeaderName;

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
