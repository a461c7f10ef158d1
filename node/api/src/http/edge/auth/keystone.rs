//! `[auth] strategy = "keystone"`: tokens are Keystone's, and the roles are those that it tells.

use std::sync::Arc;

use http::HeaderMap;

use super::super::headers;
use super::identity::{CallingService, Identity, NO_TOKEN, SERVICE_TOKEN, TOKEN};
use crate::http::errors::ApiError;
use crate::keystone::{Away, Keystone, KeystoneSection, Token};

/// When a client may ask again, while Keystone does not answer.
const AWAY_RETRY_S: u64 = 5;

/// Asks Keystone.
pub(crate) struct ByKeystone {
    settings: Box<KeystoneSection>,
    keystone: Arc<Keystone>,
}

impl ByKeystone {
    pub(super) fn new(settings: Box<KeystoneSection>, keystone: Arc<Keystone>) -> Self {
        Self { settings, keystone }
    }

    pub(super) async fn identify(
        &self,
        headers: &HeaderMap,
        method: &str,
        path: &str,
    ) -> Result<Identity, ApiError> {
        let refused = |message: &str| {
            ApiError::unauthenticated(message).challenge(&self.settings.authenticate_uri())
        };
        let token = headers::text(headers, TOKEN).ok_or_else(|| refused(NO_TOKEN))?;
        let mut with = CallingService::default();
        let is_vouched_for = match headers::text(headers, SERVICE_TOKEN) {
            Some(service) => {
                let service = self.whose(&service, false).await?;
                let service = service.ok_or_else(|| {
                    refused("The X-Service-Token is not known to Keystone, or has expired.")
                })?;
                let vouches = self.vouches(&service);
                if !vouches && self.settings.service_token_roles_required {
                    return Err(refused("The X-Service-Token has no role of a service."));
                }
                with = CallingService::from(&*service);
                vouches
            }
            None => false,
        };
        let token = self.whose(&token, is_vouched_for).await?;
        let token = token.ok_or_else(|| {
            refused("The X-Auth-Token is not known to Keystone, or has expired. Ask Keystone for another.")
        })?;
        // What a service asks for in its user's name is not what the user asked for.
        if let Some(rules) = &token.access_rules
            && !is_vouched_for
            && !rules.allow(method, path)
        {
            return Err(refused(&format!(
                "The access rules of the application credential do not allow {method} {path} of the service \
                 placement. Use one with a rule for it."
            )));
        }
        Ok(Identity {
            service: with,
            ..Identity::from(&*token)
        })
    }

    async fn whose(
        &self,
        token: &str,
        may_have_expired: bool,
    ) -> Result<Option<Arc<Token>>, ApiError> {
        let whose = self.keystone.whose(token, may_have_expired).await;
        whose.map_err(|Away(reason)| {
            tracing::warn!(reason, "Keystone cannot be asked");
            ApiError::cannot_authenticate(AWAY_RETRY_S)
        })
    }

    /// Whether a service may come with its user's token long after it was given it.
    fn vouches(&self, service: &Token) -> bool {
        let wanted = &self.settings.service_token_roles;
        service.roles.iter().any(|role| wanted.contains(role))
    }
}

impl From<&Token> for Identity {
    fn from(token: &Token) -> Self {
        Self {
            user_id: token.user_id.clone(),
            project_id: token.project_id.clone(),
            domain_id: token.domain_id.clone(),
            system_scope: token.is_for_the_system.then(|| "all".to_owned()),
            user_domain_id: token.user_domain_id.clone(),
            project_domain_id: token.project_domain_id.clone(),
            roles: token.roles.clone(),
            is_admin_project: token.is_admin_project,
            service: CallingService::default(),
        }
    }
}

impl From<&Token> for CallingService {
    fn from(token: &Token) -> Self {
        Self {
            user_id: Some(token.user_id.clone()),
            user_domain_id: token.user_domain_id.clone(),
            project_id: token.project_id.clone(),
            project_domain_id: token.project_domain_id.clone(),
            roles: token.roles.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use serde_json::{Value, json};

    use super::*;
    use crate::keystone::fixtures::{self, Cloud};

    fn by_keystone() -> (Arc<Cloud>, ByKeystone) {
        let (cloud, _, keystone) = fixtures::keystone(300);
        let settings = KeystoneSection {
            www_authenticate_uri: "http://one:1".to_owned(),
            ..KeystoneSection::default()
        };
        (
            cloud,
            ByKeystone::new(Box::new(settings), Arc::new(keystone)),
        )
    }

    fn tokens(tokens: &[(HeaderName, &str)]) -> HeaderMap {
        let one = |(name, token): &(HeaderName, &str)| (name.clone(), token.parse().unwrap());
        tokens.iter().map(one).collect()
    }

    fn documents(cloud: &Cloud, also: &[(&str, Value)]) {
        let also = also
            .iter()
            .map(|(token, also)| ((*token).to_owned(), also.clone()));
        cloud.also.lock().extend(also);
    }

    #[tokio::test]
    async fn the_token_tells_whether_its_project_is_the_admin_project() {
        let (cloud, keystone) = by_keystone();
        documents(&cloud, &[("bob:9000", json!({"is_admin_project": false}))]);
        for (token, expected) in [("alice:9000", true), ("bob:9000", false)] {
            // From Keystone, and then from what is remembered of it.
            for _ in 0..2 {
                let headers = tokens(&[(TOKEN, token)]);
                let caller = keystone.identify(&headers, "GET", "/traits").await.unwrap();
                assert_eq!(caller.is_admin_project, expected, "{token}");
            }
        }
    }

    #[tokio::test]
    async fn the_service_that_vouches_for_a_token_is_a_part_of_the_caller() {
        let (cloud, keystone) = by_keystone();
        let service = json!({"project": {"id": "services"}, "roles": [{"name": "service"}]});
        documents(&cloud, &[("nova:9000", service)]);
        let with = [(TOKEN, "alice:9000"), (SERVICE_TOKEN, "nova:9000")];
        let caller = keystone
            .identify(&tokens(&with), "GET", "/traits")
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
        let alone = keystone
            .identify(&tokens(&with[..1]), "GET", "/traits")
            .await
            .unwrap();
        assert_eq!(alone.service, CallingService::default());
    }

    #[tokio::test]
    async fn an_application_credential_is_good_for_what_its_access_rules_allow() {
        let (cloud, keystone) = by_keystone();
        let rules =
            json!([{"service": "placement", "method": "GET", "path": "/placement/traits/*"}]);
        documents(
            &cloud,
            &[
                (
                    "app:9000",
                    json!({"application_credential": {"id": "1", "access_rules": rules}}),
                ),
                (
                    "free:9000",
                    json!({"application_credential": {"id": "2", "restricted": true}}),
                ),
                (
                    "shut:9000",
                    json!({"application_credential": {"id": "3", "access_rules": []}}),
                ),
                ("nova:9000", json!({"roles": [{"name": "service"}]})),
            ],
        );
        let (read, other) = ("/placement/traits/CUSTOM_X", "/placement/traits");
        for (token, method, path, expected) in [
            ("app:9000", "GET", read, true),
            ("app:9000", "PUT", read, false),
            ("app:9000", "GET", other, false),
            ("free:9000", "PUT", other, true),
            ("shut:9000", "GET", read, false),
        ] {
            let headers = tokens(&[(TOKEN, token)]);
            let caller = keystone.identify(&headers, method, path).await;
            assert_eq!(caller.is_ok(), expected, "{token} {method} {path}");
            if let Err(refused) = caller {
                assert_eq!(refused.status.as_u16(), 401);
                assert!(refused.message.contains(path), "{refused:?}");
            }
        }
        // A service goes on with a request that its user was allowed elsewhere.
        let with = [(TOKEN, "app:9000"), (SERVICE_TOKEN, "nova:9000")];
        assert!(
            keystone
                .identify(&tokens(&with), "PUT", other)
                .await
                .is_ok()
        );
        let with_own = [(TOKEN, "app:9000"), (SERVICE_TOKEN, "free:9000")];
        assert!(
            keystone
                .identify(&tokens(&with_own), "PUT", other)
                .await
                .is_err()
        );
    }
}
