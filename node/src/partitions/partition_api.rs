//! A partition as seen by clients of one route.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;
use prometheus_client::metrics::counter::Counter;

use crate::health::{HealthChecks, LIVEZ, READYZ};
use placement_api::http::{OPENAPI, PathPrefix, Service};
use placement_audit::access;

/// The API of a partition as clients of one route see it.
pub(crate) struct PartitionApi {
    pub(crate) api: Service,
    /// Endpoints without a token: at the root for load balancers, and below the API's prefix for
    /// clients.
    pub(crate) open: Router,
    prefix: PathPrefix,
    /// Counts the requests of the partition.
    pub(crate) requests: Counter,
}

impl PartitionApi {
    pub(super) fn new(api: Service, checks: &HealthChecks, requests: Counter) -> Arc<Self> {
        let public = api.public();
        let open = (checks.clone().router())
            .merge(placement_api::http::openapi(&public.configured()))
            .route_layer(from_fn(access::logged));
        let prefix = public.prefix.clone();
        let open = if prefix.is_root() {
            open
        } else {
            open.clone().nest(prefix.as_str(), open)
        };
        Arc::new(Self {
            api,
            open,
            prefix,
            requests,
        })
    }

    /// Whether this path needs no token.
    pub(crate) fn is_open(&self, path: &str) -> bool {
        let path = path.strip_prefix(self.prefix.as_str()).unwrap_or(path);
        [LIVEZ, READYZ, OPENAPI].contains(&path)
    }
}
