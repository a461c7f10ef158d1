//! `[auth] strategy = "noauth2"`: callers are trusted without authentication. For tests and trials
//! only.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::HeaderName;

use super::super::headers;
use super::identity::{ROLES, TENANT, TOKEN, identity_in, roles, service_in};
use placement_audit::identity::Identity;

/// The caller that the request claims; `None` if it has no token.
///
/// The token is `user[:project]`; the user `admin` has the role `admin`. `X-Roles` replaces the
/// roles. `X-Project-Id`, `OpenStack-System-Scope` and the other headers of a Keystone middleware
/// are trusted as well.
pub(super) fn identify(headers: &HeaderMap) -> Option<Identity> {
    let text = |name: HeaderName| headers::text(headers, name);
    let owned = |name| text(name).map(Cow::into_owned);
    let token = text(TOKEN)?;
    let (user, project) = token.split_once(':').unwrap_or((&token, ""));
    let project = if project.is_empty() { user } else { project };
    let named = identity_in(headers, owned);
    let scope = named.system_scope.as_deref().unwrap_or_default();
    let own_project = scope.is_empty().then(|| project.to_owned());
    let roles = match text(ROLES) {
        Some(given) => roles(&given),
        None if user == "admin" => vec!["admin".to_owned()],
        None => Vec::new(),
    };
    Some(Identity {
        user_id: user.to_owned(),
        project_id: (named.project_id.or(own_project)).or_else(|| owned(TENANT)),
        roles,
        service: service_in(headers),
        ..named
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identify(pairs: &[(&'static str, &str)]) -> Option<Identity> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        super::identify(&headers)
    }

    #[test]
    fn request_without_token_has_no_caller() {
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
