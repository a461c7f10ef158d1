//! The API's port: the REST API, counted, and beside it what needs no token.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::middleware::from_fn;
use http::{Request, Response};
use tokio::time::Instant;

use crate::access::{self, Peer};
use crate::health::{HealthChecks, LIVEZ, READYZ};
use crate::http::{OPENAPI, PathPrefix, PublicAddress, Service};
use crate::metrics::Metrics;
use crate::serve::Answers;

/// What answers on the API's port.
#[derive(Clone)]
pub(crate) struct ApiPort {
    shared: Arc<Shared>,
    /// Whether there is room for no more clients.
    full: bool,
}

struct Shared {
    api: Service,
    /// At the root for balancers, and below the API's prefix for clients.
    beside: Router,
    prefix: PathPrefix,
    metrics: Arc<Metrics>,
}

impl ApiPort {
    pub(crate) fn new(
        api: Service,
        checks: HealthChecks,
        public: &PublicAddress,
        metrics: Arc<Metrics>,
    ) -> Self {
        let beside = (checks.router())
            .merge(crate::http::openapi(&public.configured()))
            .route_layer(from_fn(access::logged));
        let prefix = public.prefix.clone();
        let beside = match prefix.is_root() {
            true => beside,
            false => beside.clone().nest(prefix.as_str(), beside),
        };
        Self {
            shared: Arc::new(Shared {
                api,
                beside,
                prefix,
                metrics,
            }),
            full: false,
        }
    }

    /// What answers clients for whom there is no connection left.
    pub(crate) fn full(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            full: true,
        }
    }
}

impl Shared {
    fn is_beside(&self, path: &str) -> bool {
        let path = path.strip_prefix(self.prefix.as_str()).unwrap_or(path);
        [LIVEZ, READYZ, OPENAPI].contains(&path)
    }
}

impl Answers for ApiPort {
    async fn answer(self, request: Request<Body>, peer: SocketAddr) -> Response<Body> {
        let shared = &self.shared;
        if shared.is_beside(request.uri().path()) {
            return shared.beside.clone().answer(request, peer).await;
        }
        let peer = Some(Peer(peer));
        if self.full {
            return shared.api.turn_away(request, peer);
        }
        let begun = Instant::now();
        let method = request.method().clone();
        let served = shared.api.respond(request, peer).await;
        let status = served.response.status().as_u16();
        let http = &shared.metrics.http;
        http.answered(method.as_str(), served.route, status, begun.elapsed());
        served.response
    }
}
