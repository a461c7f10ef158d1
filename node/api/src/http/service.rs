//! The REST API as a service.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use http::{Request, Response};

use super::edge::admission::Admission;
use super::edge::callers::Callers;
use super::edge::claims::ClaimCounts;
use super::edge::limits::LimitCounts;
use super::edge::public_address::PublicAddress;
use super::edge::route::Routes;
use super::edge::searches::Searches;
use super::edge::service::{self, Served};
use super::edge::state::{Api, Server};
use super::errors::{ApiError, Misdirected};
use super::routes::ROUTES;
use placement_audit::Listener;
use placement_audit::access::{Peer, Recorded};
use placement_audit::identity::Identity;

/// All routes, prepared for look-up.
static SPLIT: LazyLock<Routes> = LazyLock::new(|| Routes::new(ROUTES));

/// The REST API of one partition; it answers every path.
#[derive(Clone)]
pub struct Service(Arc<Server>);

impl Service {
    /// Creates the API over these backends and settings.
    pub fn new(api: Api) -> Self {
        let admission = Admission::new(&api.settings);
        Self(Arc::new(Server::new(api, admission)))
    }

    /// Creates the API of another partition, with its own callers and searches, and with the memory
    /// budget of this one.
    pub fn for_partition(&self, api: Api) -> Self {
        let admission = self.0.admission.for_partition(&api.settings);
        Self(Arc::new(Server::new(api, admission)))
    }

    /// Creates the API of the same partition under another route, with the callers and searches of
    /// this one.
    pub fn reached_by(&self, api: Api) -> Self {
        let server = Server::clone(&self.0);
        Self(Arc::new(Server { api, ..server }))
    }

    /// The backends and settings.
    pub fn api(&self) -> &Api {
        &self.0.api
    }

    /// The address at which clients reach the API.
    pub fn public(&self) -> &PublicAddress {
        &self.0.api.settings.public
    }

    /// The limits per caller.
    pub fn callers(&self) -> Arc<Callers> {
        self.0.callers.clone()
    }

    /// The latest searches of this partition on this node.
    pub fn searches(&self) -> Arc<Searches> {
        self.0.searches.clone()
    }

    /// The claims of this partition on this node so far.
    pub fn claims(&self) -> ClaimCounts {
        self.0.claims.counts()
    }

    /// The limits of projects that writes of this partition have exceeded on this node so far.
    pub fn exceeded_limits(&self) -> LimitCounts {
        let exceeded = self.0.exceeded_limits.as_ref();
        let counts = exceeded.map(|exceeded| exceeded.counts());
        counts.unwrap_or_default()
    }

    /// Number of candidate searches that wait in the queue.
    pub fn searches_waiting(&self) -> usize {
        self.0.admission.searches.waiting()
    }

    /// Number of open event streams of all partitions, which share one limit.
    pub fn event_streams(&self) -> usize {
        self.0.admission.streams_open()
    }

    /// Answers one request, which arrived on a connection from `peer`.
    pub fn respond(
        &self,
        request: Request<Body>,
        peer: Option<Peer>,
    ) -> impl Future<Output = Served> + Send + use<> {
        service::respond(self.0.clone(), &SPLIT, request, peer, None)
    }

    /// Answers a caller whom another listener has authorized: an operator, or a user of the web
    /// interface. The request needs no token, and the limits per caller do not apply.
    pub async fn respond_to_authorized(
        &self,
        request: Request<Body>,
        peer: Option<Peer>,
        listener: Listener,
        caller: Identity,
    ) -> Response<Body> {
        // Boxed, as otherwise every request would reserve space for it.
        let authorized = Some(Box::new((listener, caller)));
        let served = service::respond(self.0.clone(), &SPLIT, request, peer, authorized);
        let mut response = served.await.response;
        response.extensions_mut().insert(Recorded);
        response
    }

    /// Answers a client beyond the limit of connections.
    pub fn turn_away(&self, request: Request<Body>, peer: Option<Peer>) -> Response<Body> {
        let busy = ApiError::busy("This node has reached its limit of connections");
        service::refuse(&self.0, request, peer, busy)
    }

    /// Answers a request that belongs to no partition.
    pub fn misdirected(
        &self,
        request: Request<Body>,
        peer: Option<Peer>,
        why: &Misdirected,
    ) -> Response<Body> {
        service::refuse(&self.0, request, peer, why.into())
    }
}
