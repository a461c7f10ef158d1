//! The API's port: the REST API, counted, and beside it what needs no token. Each partition that this node serves has
//! an API of its own, and a request goes to one of them by its path, its host or the listener that it came by.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::middleware::from_fn;
use http::{Request, Response};
use percent_encoding::percent_decode_str;
use tokio::time::Instant;

use crate::access::{self, Peer};
use crate::config::Way;
use crate::health::{HealthChecks, LIVEZ, READYZ};
use crate::http::{OPENAPI, PathPrefix, PublicAddress, Service};
use crate::metrics::{Metrics, Requests};
use crate::partitions::Served;
use crate::serve::Answers;

/// What answers on the API's port.
#[derive(Clone)]
pub(crate) struct ApiPort {
    shared: Arc<Shared>,
    /// Whether there is room for no more clients.
    full: bool,
    /// The one of the others whose listener this is.
    only: Option<usize>,
}

struct Shared {
    default: Face,
    others: Vec<(Way, Face)>,
    /// Where clients reach the default partition.
    public: PublicAddress,
    metrics: Arc<Metrics>,
}

/// What the clients of one partition see.
struct Face {
    api: Service,
    /// At the root for balancers, and below the API's prefix for clients.
    beside: Router,
    prefix: PathPrefix,
    /// Counts the requests of a partition that is not the default one.
    requests: Option<Requests>,
}

impl Face {
    fn new(api: Service, checks: HealthChecks, requests: Option<Requests>) -> Self {
        let public = api.public();
        let beside = (checks.router())
            .merge(crate::http::openapi(&public.configured()))
            .route_layer(from_fn(access::logged));
        let prefix = public.prefix.clone();
        let beside = match prefix.is_root() {
            true => beside,
            false => beside.clone().nest(prefix.as_str(), beside),
        };
        Self {
            api,
            beside,
            prefix,
            requests,
        }
    }

    fn is_beside(&self, path: &str) -> bool {
        let path = path.strip_prefix(self.prefix.as_str()).unwrap_or(path);
        [LIVEZ, READYZ, OPENAPI].contains(&path)
    }
}

impl ApiPort {
    /// Of the default partition's API, and those of others with the ways that lead to them.
    pub(crate) fn new(
        api: Service,
        others: Vec<Served>,
        checks: &HealthChecks,
        metrics: Arc<Metrics>,
    ) -> Self {
        let others = others.into_iter().map(|served| {
            let requests = Some(metrics.http.requests_of(&served.name));
            let face = Face::new(served.api, checks.clone(), requests);
            (served.way, face)
        });
        let others = others.collect();
        Self {
            shared: Arc::new(Shared {
                public: api.public().clone(),
                default: Face::new(api, checks.clone(), None),
                others,
                metrics,
            }),
            full: false,
            only: None,
        }
    }

    /// What answers clients for whom there is no connection left.
    pub(crate) fn full(&self) -> Self {
        Self {
            full: true,
            ..self.clone()
        }
    }

    /// What answers on a partition's own listener: its place among the others.
    pub(crate) fn only(&self, place: usize) -> Self {
        Self {
            only: Some(place),
            ..self.clone()
        }
    }

    fn face(&self, request: &Request<Body>) -> &Face {
        let Shared {
            default, others, ..
        } = &*self.shared;
        if let Some(place) = self.only {
            return others.get(place).map_or(default, |(_, face)| face);
        }
        if others.is_empty() {
            return default;
        }
        let path = percent_decode_str(request.uri().path()).decode_utf8_lossy();
        let is_below = |way: &Way| match way {
            Way::Prefix(prefix) => prefix.below(&path).is_some(),
            Way::Host(_) | Way::Listen(_) => false,
        };
        let below = others.iter().find(|(way, _)| is_below(way));
        let found = below.or_else(|| {
            let host = self.shared.public.host(request)?;
            let is_asked = |way: &Way| matches!(way, Way::Host(name) if *name == host);
            others.iter().find(|(way, _)| is_asked(way))
        });
        found.map_or(default, |(_, face)| face)
    }
}

impl Answers for ApiPort {
    async fn answer(self, request: Request<Body>, peer: SocketAddr) -> Response<Body> {
        let face = self.face(&request);
        if face.is_beside(request.uri().path()) {
            return face.beside.clone().answer(request, peer).await;
        }
        let peer = Some(Peer(peer));
        if self.full {
            return face.api.turn_away(request, peer);
        }
        let begun = Instant::now();
        let method = request.method().clone();
        let served = face.api.respond(request, peer).await;
        let status = served.response.status().as_u16();
        let http = &self.shared.metrics.http;
        http.answered(method.as_str(), served.route, status, begun.elapsed());
        if let Some(requests) = &face.requests {
            requests.count();
        }
        served.response
    }
}
