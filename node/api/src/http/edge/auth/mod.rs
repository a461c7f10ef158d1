//! Authentication of the caller of a request.

mod identity;
mod keystone;
mod noauth2;
mod proxy;

use http::request::Parts;

use self::identity::NO_TOKEN;
use super::settings::AuthStrategy;
use super::state::Api;
use crate::http::errors::ApiError;
use placement_audit::access::{Encrypted, Peer};
use placement_audit::identity::Identity;

/// Authenticates the caller as `[auth] strategy` says. `path` is the path that the client sees, and
/// `peer` the other end of the connection.
///
/// # Errors
/// 401 if the credentials are missing or wrong; 503 if they cannot be checked now.
pub(crate) async fn identify(
    api: &Api,
    parts: &Parts,
    path: &str,
    peer: Option<Peer>,
) -> Result<Identity, ApiError> {
    let headers = &parts.headers;
    let section = &api.settings.auth;
    match section.strategy {
        AuthStrategy::Noauth2 => {
            noauth2::identify(headers).ok_or_else(|| ApiError::unauthenticated(NO_TOKEN))
        }
        AuthStrategy::Proxy => {
            let encrypted = parts.extensions.get::<Encrypted>();
            let is_vouched_for = encrypted.is_some_and(|encrypted| encrypted.vouched);
            proxy::identify(section, headers, peer, is_vouched_for)
        }
        AuthStrategy::Keystone => {
            let keystone = (api.keystone.as_ref()).expect("the strategy keystone has a client");
            let asking = keystone::identify(keystone, headers, parts.method.as_str(), path);
            Box::pin(asking).await
        }
    }
}
