//! Who is calling: an authenticator makes an [`Identity`] of a request.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::HeaderName;

use super::headers;

const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const ROLES: HeaderName = HeaderName::from_static("x-roles");
const SYSTEM_SCOPE: HeaderName = HeaderName::from_static("openstack-system-scope");
const PROJECT: HeaderName = HeaderName::from_static("x-project-id");
const TENANT: HeaderName = HeaderName::from_static("x-tenant-id");
const DOMAIN: HeaderName = HeaderName::from_static("x-domain-id");
const USER_DOMAIN: HeaderName = HeaderName::from_static("x-user-domain-id");
const PROJECT_DOMAIN: HeaderName = HeaderName::from_static("x-project-domain-id");

/// A caller, as policy rules see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::http) struct Identity {
    pub(in crate::http) user_id: String,
    /// The project the caller acts in.
    pub(in crate::http) project_id: Option<String>,
    /// The domain the caller acts in.
    pub(in crate::http) domain_id: Option<String>,
    /// `all` if the caller acts on the whole system.
    pub(in crate::http) system_scope: Option<String>,
    /// The user's domain.
    pub(in crate::http) user_domain_id: Option<String>,
    /// The project's domain.
    pub(in crate::http) project_domain_id: Option<String>,
    /// Roles as they were given.
    pub(in crate::http) roles: Vec<String>,
}

/// Finds out who sent a request.
pub(in crate::http) trait Authenticator: Send + Sync {
    /// The caller, or `None` if the request does not tell who it is.
    fn identify(&self, headers: &HeaderMap) -> Option<Identity>;
}

/// `noauth2`: believes what the request says. For tests, and behind a proxy that checks.
///
/// The token is `user[:project]`; the user `admin` has the role `admin`. `X-Roles` replaces the
/// roles; `X-Project-Id`, `OpenStack-System-Scope` and the other headers that a Keystone
/// middleware would set are believed as well.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct NoAuth2;

impl Authenticator for NoAuth2 {
    fn identify(&self, headers: &HeaderMap) -> Option<Identity> {
        let text = |name: HeaderName| headers::text(headers, name);
        let owned = |name| text(name).map(Cow::into_owned);
        let token = text(TOKEN)?;
        let (user, project) = token.split_once(':').unwrap_or((&token, ""));
        let project = if project.is_empty() { user } else { project };
        let system_scope = owned(SYSTEM_SCOPE);
        let own_project = system_scope
            .as_ref()
            .is_none_or(String::is_empty)
            .then(|| project.to_owned());
        let roles = match text(ROLES) {
            Some(roles) if roles.is_empty() => Vec::new(),
            Some(roles) => roles
                .split(',')
                .map(|role| role.trim().to_owned())
                .collect(),
            None if user == "admin" => vec!["admin".to_owned()],
            None => Vec::new(),
        };
        Some(Identity {
            user_id: user.to_owned(),
            project_id: owned(PROJECT).or(own_project).or_else(|| owned(TENANT)),
            domain_id: owned(DOMAIN),
            system_scope,
            user_domain_id: owned(USER_DOMAIN),
            project_domain_id: owned(PROJECT_DOMAIN),
            roles,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identify(pairs: &[(&'static str, &str)]) -> Option<Identity> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        NoAuth2.identify(&headers)
    }

    #[test]
    fn without_a_token_no_caller_is_known() {
        assert_eq!(identify(&[("x-roles", "admin")]), None);
    }

    #[test]
    fn only_the_user_admin_is_an_admin() {
        let roles = |token| identify(&[("x-auth-token", token)]).unwrap().roles;
        assert_eq!(roles("admin"), ["admin"]);
        assert_eq!(roles("admin:p"), ["admin"]);
        assert!(roles("Admin").is_empty());
        assert!(roles("user").is_empty());
        assert!(roles("").is_empty());
    }

    #[test]
    fn the_roles_header_replaces_the_roles() {
        let roles = |given| {
            identify(&[("x-auth-token", "admin"), ("x-roles", given)])
                .unwrap()
                .roles
        };
        assert_eq!(roles("reader, member"), ["reader", "member"]);
        assert!(roles("").is_empty());
    }

    #[test]
    fn the_project_comes_from_the_token_or_the_header() {
        let one = identify(&[("x-auth-token", "u:p")]).unwrap();
        assert_eq!(
            (one.user_id.as_str(), one.project_id.as_deref()),
            ("u", Some("p"))
        );
        let one = identify(&[("x-auth-token", "u")]).unwrap();
        assert_eq!(one.project_id.as_deref(), Some("u"));
        let one = identify(&[("x-auth-token", "u:p"), ("x-project-id", "q")]).unwrap();
        assert_eq!(one.project_id.as_deref(), Some("q"));
        let one = identify(&[("x-auth-token", "u"), ("openstack-system-scope", "all")]).unwrap();
        assert_eq!(one.project_id, None);
    }
}
