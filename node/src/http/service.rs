//! The API as a service.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use http::{Request, Response};

use super::edge::admission::Admission;
use super::edge::auth::Authenticator;
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
            admission: Admission::new(&api.settings),
            api,
        }))
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
