//! Who is calling.

mod identity;
mod keystone;
mod noauth2;
mod proxy;

use std::sync::Arc;

use http::request::Parts;

pub use self::identity::CallingService;
pub use self::identity::Identity;
use self::identity::NO_TOKEN;
use self::keystone::ByKeystone;
use self::proxy::Proxies;
use super::settings::AuthStrategy;
use crate::access::{Encrypted, Peer};
use crate::http::errors::ApiError;
use crate::keystone::Keystone;

/// Finds out who sent a request (`[auth] strategy`).
pub(crate) enum Authenticator {
    NoAuth2,
    Proxy(Proxies),
    Keystone(ByKeystone),
}

impl Authenticator {
    /// The one that was chosen. `keystone` comes with its strategy.
    pub(crate) fn new(strategy: &AuthStrategy, keystone: Option<Arc<Keystone>>) -> Self {
        match strategy {
            AuthStrategy::NoAuth2 => Self::NoAuth2,
            AuthStrategy::Proxy { addresses } => Self::Proxy(Proxies(addresses.clone())),
            AuthStrategy::Keystone(settings) => {
                let keystone = keystone.expect("the strategy keystone comes with it");
                Self::Keystone(ByKeystone::new(settings.clone(), keystone))
            }
        }
    }

    /// The caller of a request for `path`, as the client sees it, that came over a connection from `peer`.
    ///
    /// # Errors
    /// 401 if it does not say who it is, or wrongly; 503 if that cannot be found out now.
    pub(crate) async fn identify(
        &self,
        parts: &Parts,
        path: &str,
        peer: Option<Peer>,
    ) -> Result<Identity, ApiError> {
        let headers = &parts.headers;
        match self {
            Self::NoAuth2 => {
                noauth2::identify(headers).ok_or_else(|| ApiError::unauthenticated(NO_TOKEN))
            }
            Self::Proxy(proxies) => {
                let encrypted = parts.extensions.get::<Encrypted>();
                let is_vouched_for = encrypted.is_some_and(|encrypted| encrypted.vouched);
                proxies.identify(headers, peer, is_vouched_for)
            }
            Self::Keystone(keystone) => {
                keystone
                    .identify(headers, parts.method.as_str(), path)
                    .await
            }
        }
    }
}
