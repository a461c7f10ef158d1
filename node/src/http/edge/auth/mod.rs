//! Who is calling.

mod keystone;
mod names;
mod noauth2;
mod proxy;

use std::sync::Arc;

use http::HeaderMap;

use self::keystone::ByKeystone;
use self::proxy::Proxies;
use super::settings::AuthStrategy;
use crate::access::Peer;
use crate::http::errors::ApiError;
use crate::keystone::Keystone;

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

/// Finds out who sent a request (`[auth] strategy`).
pub(in crate::http) enum Authenticator {
    NoAuth2,
    Proxy(Proxies),
    Keystone(ByKeystone),
}

impl Authenticator {
    /// The one that was chosen. `keystone` comes with its strategy.
    pub(in crate::http) fn new(strategy: &AuthStrategy, keystone: Option<Arc<Keystone>>) -> Self {
        match strategy {
            AuthStrategy::NoAuth2 => Self::NoAuth2,
            AuthStrategy::Proxy { addresses } => Self::Proxy(Proxies(addresses.clone())),
            AuthStrategy::Keystone(settings) => {
                let keystone = keystone.expect("whoever chooses it gives it");
                Self::Keystone(ByKeystone::new(settings.clone(), keystone))
            }
        }
    }

    /// The caller of a request that came over a connection from `peer`.
    ///
    /// # Errors
    /// 401 if it does not say who it is, or wrongly; 503 if that cannot be found out now.
    pub(in crate::http) async fn identify(
        &self,
        headers: &HeaderMap,
        peer: Option<Peer>,
    ) -> Result<Identity, ApiError> {
        match self {
            Self::NoAuth2 => {
                noauth2::identify(headers).ok_or_else(|| ApiError::unauthenticated(NO_TOKEN))
            }
            Self::Proxy(proxies) => proxies.identify(headers, peer),
            Self::Keystone(keystone) => keystone.identify(headers).await,
        }
    }
}

const NO_TOKEN: &str = "The request has no X-Auth-Token header. Send one.";

/// The names in `X-Roles`.
fn roles(given: &str) -> Vec<String> {
    let names = given.split(',').map(str::trim);
    let names = names.filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}
