//! `[auth] strategy = "keystone"`: Keystone validates the tokens and names the roles.

use std::sync::Arc;

use http::HeaderMap;

use super::super::headers;
use super::identity::{NO_TOKEN, SERVICE_TOKEN, TOKEN};
use crate::http::errors::ApiError;
use crate::keystone::{Keystone, KeystoneUnavailable, Token};
use placement_audit::identity::{CallingService, Identity};
use placement_base::log_messages::log;

/// Validates the token, and the service token if there is one, with Keystone.
pub(super) async fn identify(
    keystone: &Keystone,
    headers: &HeaderMap,
    method: &str,
    path: &str,
) -> Result<Identity, ApiError> {
    let refused = |message: &str| {
        ApiError::unauthenticated(message).challenge(&keystone.section().authenticate_uri())
    };
    let token = headers::text(headers, TOKEN).ok_or_else(|| refused(NO_TOKEN))?;
    let mut with = CallingService::default();
    let is_vouched_for = match headers::text(headers, SERVICE_TOKEN) {
        Some(service) => {
            let service = token_of(keystone, &service, false).await?.ok_or_else(|| {
                refused("The X-Service-Token is unknown to Keystone or has expired.")
            })?;
            // A service token with one of these roles makes an expired user token acceptable.
            let wanted = &keystone.section().service_token_roles;
            let mut roles = service.identity.roles.iter();
            let vouches = roles.any(|role| wanted.contains(role));
            if !vouches && keystone.section().service_token_roles_required {
                return Err(refused("The X-Service-Token has no service role."));
            }
            with = CallingService::from(&service.identity);
            vouches
        }
        None => false,
    };
    let token = token_of(keystone, &token, is_vouched_for)
        .await?
        .ok_or_else(|| {
            refused("The X-Auth-Token is unknown to Keystone or has expired. Request a new one.")
        })?;
    // Access rules limit requests of the user, but not requests of a service in the user's name.
    if let Some(rules) = &token.access_rules
        && !is_vouched_for
        && !rules.allow(method, path)
    {
        return Err(refused(&format!(
            "The access rules of the application credential do not allow {method} {path} of the service \
                 placement. Use a credential with a rule for it."
        )));
    }
    Ok(Identity {
        service: with,
        ..token.identity.clone()
    })
}

async fn token_of(
    keystone: &Keystone,
    token: &str,
    may_have_expired: bool,
) -> Result<Option<Arc<Token>>, ApiError> {
    let known = keystone.token_owner(token, may_have_expired).await;
    known.map_err(|KeystoneUnavailable(reason)| {
        log!(
            KEYSTONE_UNAVAILABLE,
            reason,
            "cannot validate a token with Keystone"
        );
        ApiError::cannot_authenticate()
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use serde_json::json;

    use super::*;
    use crate::keystone::fixtures;

    fn tokens(tokens: &[(HeaderName, &str)]) -> HeaderMap {
        let one = |(name, token): &(HeaderName, &str)| (name.clone(), token.parse().unwrap());
        tokens.iter().map(one).collect()
    }

    #[tokio::test]
    async fn the_token_tells_whether_its_project_is_the_admin_project() {
        let (cloud, _, keystone) = fixtures::keystone(300);
        cloud.extend("bob", json!({"is_admin_project": false}));
        for (token, expected) in [("alice:9000", true), ("bob:9000", false)] {
            // First from Keystone, then from the cache.
            for _ in 0..2 {
                let headers = tokens(&[(TOKEN, token)]);
                let caller = identify(&keystone, &headers, "GET", "/traits")
                    .await
                    .unwrap();
                assert_eq!(caller.is_admin_project, expected, "{token}");
            }
        }
    }

    #[tokio::test]
    async fn the_service_that_vouches_for_a_token_is_a_part_of_the_caller() {
        let (cloud, _, keystone) = fixtures::keystone(300);
        let service = json!({"project": {"id": "services"}, "roles": [{"name": "service"}]});
        cloud.extend("nova", service);
        let with = [(TOKEN, "alice:9000"), (SERVICE_TOKEN, "nova:9000")];
        let caller = identify(&keystone, &tokens(&with), "GET", "/traits")
            .await
            .unwrap();
        assert_eq!(
            (caller.user_id.as_str(), &caller.roles[..]),
            ("alice", &["member".to_owned()][..])
        );
        let expected = CallingService {
            user_id: Some("nova".to_owned()),
            user_domain_id: Some("default".to_owned()),
            project_id: Some("services".to_owned()),
            project_domain_id: None,
            roles: vec!["service".to_owned()],
        };
        assert_eq!(caller.service, expected);
        let alone = identify(&keystone, &tokens(&with[..1]), "GET", "/traits")
            .await
            .unwrap();
        assert_eq!(alone.service, CallingService::default());
    }

    #[tokio::test]
    async fn access_rules_limit_an_application_credential() {
        let (cloud, _, keystone) = fixtures::keystone(300);
        let rules =
            json!([{"service": "placement", "method": "GET", "path": "/placement/traits/*"}]);
        for (user, also) in [
            (
                "app",
                json!({"application_credential": {"id": "1", "access_rules": rules}}),
            ),
            (
                "free",
                json!({"application_credential": {"id": "2", "restricted": true}}),
            ),
            (
                "shut",
                json!({"application_credential": {"id": "3", "access_rules": []}}),
            ),
            ("nova", json!({"roles": [{"name": "service"}]})),
        ] {
            cloud.extend(user, also);
        }
        let (read, other) = ("/placement/traits/CUSTOM_X", "/placement/traits");
        for (token, method, path, expected) in [
            ("app:9000", "GET", read, true),
            ("app:9000", "PUT", read, false),
            ("app:9000", "GET", other, false),
            ("free:9000", "PUT", other, true),
            ("shut:9000", "GET", read, false),
        ] {
            let headers = tokens(&[(TOKEN, token)]);
            let caller = identify(&keystone, &headers, method, path).await;
            assert_eq!(caller.is_ok(), expected, "{token} {method} {path}");
            if let Err(refused) = caller {
                assert_eq!(refused.status.as_u16(), 401);
                assert!(refused.message.contains(path), "{refused:?}");
            }
        }
        // A service may continue a request that another service has allowed to the user.
        let with = [(TOKEN, "app:9000"), (SERVICE_TOKEN, "nova:9000")];
        assert!(
            identify(&keystone, &tokens(&with), "PUT", other)
                .await
                .is_ok()
        );
        let with_own = [(TOKEN, "app:9000"), (SERVICE_TOKEN, "free:9000")];
        assert!(
            identify(&keystone, &tokens(&with_own), "PUT", other)
                .await
                .is_err()
        );
    }
}
