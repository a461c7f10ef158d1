//! The API as a service that can be mounted.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::edge::admission::Admission;
use super::edge::policy::{Policy, PolicyError};
use super::edge::settings::{AuthStrategy, PolicySettings};
use super::edge::state::{Api, Server};
use super::edge::{auth, service};
use super::routes::ROUTES;

/// The whole API as one service, to be mounted at `/` (it answers every path).
pub fn router(api: Api) -> axum::Router {
    service(api).0
}

/// The same, with what answers clients for whom there is no connection left, and with what can be
/// changed while it serves.
pub fn service(api: Api) -> (axum::Router, axum::Router, Changeable) {
    let authenticator = match api.settings.auth.strategy {
        AuthStrategy::NoAuth2 => Box::new(auth::NoAuth2),
    };
    let policy = ArcSwap::from_pointee(Policy::new(&api.settings.policy));
    let admission = Admission::new(&api.settings);
    let server = Arc::new(Server {
        api,
        authenticator,
        policy,
        admission,
    });
    let changeable = Changeable(server.clone());
    let beyond = server.clone();
    let turned_away =
        axum::Router::new().fallback(move |request| service::turn_away(beyond.clone(), request));
    let router = axum::Router::new()
        .fallback(move |request| service::respond(server.clone(), &ROUTES, request));
    (router, turned_away, changeable)
}

/// What of the API can be changed while it serves.
pub struct Changeable(Arc<Server>);

impl Changeable {
    /// Reads the rules again and judges by them from now on, under other settings too.
    ///
    /// # Errors
    /// A file that cannot be understood; then the rules from before stay in force.
    pub fn policy(&self, settings: &PolicySettings) -> Result<(), PolicyError> {
        self.0.policy.store(Arc::new(Policy::read(settings)?));
        Ok(())
    }
}
