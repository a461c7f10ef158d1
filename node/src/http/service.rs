//! The API as a service.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use http::{Request, Response};

use super::edge::admission::Admission;
use super::edge::auth::Authenticator;
use super::edge::callers::Callers;
use super::edge::public_address::PublicAddress;
use super::edge::route::Routes;
use super::edge::service::{self, Served};
use super::edge::state::{Api, Server};
use super::errors::{ApiError, Misdirected};
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

    /// The API of another partition: with callers and searches of its own, in the memory of this one.
    pub(crate) fn beside(&self, api: Api) -> Self {
        Self(Arc::new(Server {
            authenticator: Authenticator::new(&api.settings.auth.strategy, api.keystone.clone()),
            callers: Arc::new(Callers::new(&api.settings, api.clock.clone())),
            admission: self.0.admission.beside(&api.settings),
            api,
        }))
    }

    /// The API of the same partition, reached by another route: with the callers and searches of this one.
    pub(crate) fn reached_by(&self, api: Api) -> Self {
        Self(Arc::new(Server {
            authenticator: Authenticator::new(&api.settings.auth.strategy, api.keystone.clone()),
            callers: self.0.callers.clone(),
            admission: self.0.admission.clone(),
            api,
        }))
    }

    /// What it stands on.
    pub(crate) fn api(&self) -> &Api {
        &self.0.api
    }

    /// Where clients reach it.
    pub(crate) fn public(&self) -> &PublicAddress {
        &self.0.api.settings.public
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
        let busy = ApiError::busy("This node has as many connections as it may");
        service::refuse(&self.0, request, peer, busy)
    }

    /// Answers a request that is no partition's.
    pub(crate) fn misdirected(
        &self,
        request: Request<Body>,
        peer: Option<Peer>,
        why: &Misdirected,
    ) -> Response<Body> {
        service::refuse(&self.0, request, peer, why.into())
    }
}
