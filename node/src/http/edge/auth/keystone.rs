//! `[auth] strategy = "keystone"`: tokens are Keystone's, and the roles are those that it tells.

use std::sync::Arc;

use http::HeaderMap;

use super::super::headers;
use super::identity::Identity;
use super::names::{NO_TOKEN, SERVICE_TOKEN, TOKEN};
use crate::http::edge::settings::KeystoneSettings;
use crate::http::errors::ApiError;
use crate::keystone::{Away, Keystone, Token};

/// When a client may ask again, while Keystone does not answer.
const AWAY_RETRY_S: u64 = 5;

/// Asks Keystone.
pub(in crate::http) struct ByKeystone {
    settings: KeystoneSettings,
    keystone: Arc<Keystone>,
}

impl ByKeystone {
    pub(super) fn new(settings: KeystoneSettings, keystone: Arc<Keystone>) -> Self {
        Self { settings, keystone }
    }

    pub(super) async fn identify(&self, headers: &HeaderMap) -> Result<Identity, ApiError> {
        let refused = |message: &str| {
            ApiError::unauthenticated(message).challenge(&self.settings.www_authenticate_uri)
        };
        let token = headers::text(headers, TOKEN).ok_or_else(|| refused(NO_TOKEN))?;
        let mut service_user_id = None;
        let may_have_expired = match headers::text(headers, SERVICE_TOKEN) {
            Some(service) => {
                let service = self.whose(&service, false).await?;
                let service = service.ok_or_else(|| {
                    refused("The X-Service-Token is not known to Keystone, or has expired.")
                })?;
                let vouches = self.vouches(&service);
                if !vouches && self.settings.service_token_roles_required {
                    return Err(refused("The X-Service-Token has no role of a service."));
                }
                service_user_id = Some(service.user_id.clone());
                vouches
            }
            None => false,
        };
        match self.whose(&token, may_have_expired).await? {
            Some(token) => Ok(Identity {
                service_user_id,
                ..Identity::from(&*token)
            }),
            None => Err(refused(
                "The X-Auth-Token is not known to Keystone, or has expired. Ask Keystone for another.",
            )),
        }
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
            service_user_id: None,
        }
    }
}
