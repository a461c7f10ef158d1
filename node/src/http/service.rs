//! The API as a service.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use http::{Request, Response};

use super::edge::admission::Admission;
use super::edge::auth::Authenticator;
use super::edge::callers::Callers;
use super::edge::route::Routes;
use super::edge::service::{self, Served};
use super::edge::state::{Api, Server};
use super::routes::ROUTES;
use crate::access::Peer;

/// Every route there is.
static SPLIT: LazyLock<Routes> = LazyLock::new(|| Routes::of(&ROUTES));

/// The whole API; it answers every path.
#[derive(Clone)]
pub struct Service(Arc<Server>);

impl Service {
    /// The API over this.
    pub fn new(api: Api) -> Self {
        Self(Arc::new(Server {
            authenticator: Authenticator::new(&api.settings.auth.strategy, api.keystone.clone()),
            callers: Arc::new(Callers::new(&api.settings, api.clock.clone())),
            admission: Admission::new(&api.settings),
            api,
        }))
    }

    /// How much each caller may ask.
    pub(crate) fn callers(&self) -> Arc<Callers> {
        self.0.callers.clone()
    }

    /// Answers one request, which came over a connection from `peer`.
    pub fn respond(
        &self,
        request: Request<Body>,
        peer: Option<Peer>,
    ) -> impl Future<Output = Served> + Send + use<> {
        service::respond(self.0.clone(), &SPLIT, request, peer)
    }

    /// Answers a client for whom there is no connection left.
    pub(crate) fn turn_away(&self, request: Request<Body>, peer: Option<Peer>) -> Response<Body> {
        service::turn_away(&self.0, request, peer)
    }
}
