//! The API's port: the REST API, counted, and beside it what needs no token. Each partition has an API of its own. A
//! request goes to one of them by the routes in the state of the cluster, or by the listener that it came by; a request
//! that is no partition's is refused.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::middleware::from_fn;
use http::{Request, Response};
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use placement_model::Cluster;
use placement_model::cluster::RoutedBy;
use placement_model::types::{PartitionName, RESERVED_SEGMENTS};
use placement_raft_store::AppliedState;
use tokio::time::Instant;

use crate::access::{self, Peer};
use crate::cluster::slot::Slot;
use crate::health::{HealthChecks, LIVEZ, READYZ};
use crate::http::{Misdirected, OPENAPI, PathPrefix, PublicAddress, Service};
use crate::metrics::{Metrics, Requests};
use crate::partitions::Partitions;
use crate::serve::Answers;

/// Most faces that are kept. A partition has a few routes; those that are gone are forgotten with all others.
const FACES_MAX: usize = 4096;

/// What answers on the API's port.
#[derive(Clone)]
pub(crate) struct ApiPort {
    shared: Arc<Shared>,
    /// Whether there is room for no more clients.
    full: bool,
    /// The partition whose listener this is.
    only: Option<Arc<Face>>,
}

struct Shared {
    slot: Arc<Slot>,
    partitions: Partitions,
    /// The default partition's, while no partition has hosts.
    default: Arc<Face>,
    /// The others that were asked for.
    faces: Mutex<HashMap<(PartitionName, RoutedBy), Arc<Face>>>,
    checks: HealthChecks,
    metrics: Arc<Metrics>,
}

/// What the clients of one partition see that come by one route.
struct Face {
    api: Service,
    /// At the root for balancers, and below the API's prefix for clients.
    beside: Router,
    prefix: PathPrefix,
    /// Counts the requests of a partition that is not the default one.
    requests: Option<Requests>,
}

impl Face {
    fn new(api: Service, checks: HealthChecks, requests: Option<Requests>) -> Arc<Self> {
        let public = api.public();
        let beside = (checks.router())
            .merge(crate::http::openapi(&public.configured()))
            .route_layer(from_fn(access::logged));
        let prefix = public.prefix.clone();
        let beside = match prefix.is_root() {
            true => beside,
            false => beside.clone().nest(prefix.as_str(), beside),
        };
        Arc::new(Self {
            api,
            beside,
            prefix,
            requests,
        })
    }

    fn is_beside(&self, path: &str) -> bool {
        let path = path.strip_prefix(self.prefix.as_str()).unwrap_or(path);
        [LIVEZ, READYZ, OPENAPI].contains(&path)
    }
}

impl Shared {
    fn face(&self, name: &PartitionName, by: Option<RoutedBy>) -> Arc<Face> {
        let api = self.partitions.api(name, by);
        let requests = (!name.is_default()).then(|| self.metrics.http.requests_of(name.as_str()));
        Face::new(api, self.checks.clone(), requests)
    }

    /// Whose a request is.
    fn route(&self, request: &Request<Body>) -> Result<Arc<Face>, Misdirected> {
        let path = percent_decode_str(request.uri().path()).decode_utf8_lossy();
        let public = self.default.api.public();
        // Balancers ask these of a node, by whichever address.
        if path == "/" || self.default.is_beside(&path) {
            return Ok(self.default.clone());
        }
        let running = self.slot.get();
        let running = running.filter(|running| running.standards.are_present());
        let Some(running) = running else {
            // The doors wait until this node knows more, and look then.
            return match is_of_default(&public.prefix, &path) {
                true => Ok(self.default.clone()),
                false => Err(Misdirected::Unknown(self.slot.outside())),
            };
        };
        let applied: Arc<AppliedState> = running.replica.views.current();
        let (name, by) = owner(&applied.cluster, public, &path, request)?;
        if by == RoutedBy::AnyHost {
            return Ok(self.default.clone());
        }
        let key = (name, by);
        if let Some(face) = self.faces.lock().get(&key) {
            return Ok(face.clone());
        }
        let face = self.face(&key.0, Some(key.1.clone()));
        let mut faces = self.faces.lock();
        if faces.len() >= FACES_MAX {
            faces.clear();
        }
        Ok(faces.entry(key).or_insert(face).clone())
    }
}

/// The partition whose a request is, and why.
fn owner(
    cluster: &Cluster,
    public: &PublicAddress,
    path: &Cow<'_, str>,
    request: &Request<Body>,
) -> Result<(PartitionName, RoutedBy), Misdirected> {
    let host = || public.host(request);
    let (id, by) = (cluster.route(path, host)).ok_or_else(|| Misdirected::Host(host()))?;
    if let RoutedBy::Prefix(prefix) = &by
        && prefix.path().covers(&public.prefix)
    {
        return Err(Misdirected::Prefix {
            partition: prefix.clone(),
            api: public.prefix.clone(),
        });
    }
    let is_alone = cluster.partitions().next().is_none();
    if id.is_default() && !is_alone && !is_of_default(&public.prefix, path) {
        return Err(Misdirected::Path(path.clone().into_owned()));
    }
    let name = cluster
        .name_of(id)
        .expect("routes lead to partitions that are there");
    Ok((name, by))
}

/// Whether a path is one of the default partition's API, which is below this prefix.
fn is_of_default(prefix: &PathPrefix, path: &str) -> bool {
    let Some(below) = prefix.below(path) else {
        return false;
    };
    let first = below.trim_start_matches('/').split('/').next();
    !prefix.is_root() || first.is_some_and(|first| RESERVED_SEGMENTS.contains(&first))
}

impl ApiPort {
    pub(crate) fn new(
        slot: Arc<Slot>,
        partitions: Partitions,
        checks: &HealthChecks,
        metrics: Arc<Metrics>,
    ) -> Self {
        let default = partitions.api(&PartitionName::default(), Some(RoutedBy::AnyHost));
        Self {
            shared: Arc::new(Shared {
                slot,
                partitions,
                default: Face::new(default, checks.clone(), None),
                faces: Mutex::default(),
                checks: checks.clone(),
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

    /// What answers on a partition's own listener.
    pub(crate) fn only(&self, name: &PartitionName) -> Self {
        Self {
            only: Some(self.shared.face(name, None)),
            ..self.clone()
        }
    }
}

impl Answers for ApiPort {
    async fn answer(self, request: Request<Body>, peer: SocketAddr) -> Response<Body> {
        let begun = Instant::now();
        let method = request.method().clone();
        let http = &self.shared.metrics.http;
        let routed = match &self.only {
            Some(only) => Ok(only.clone()),
            None => self.shared.route(&request),
        };
        let face = match routed {
            Ok(face) => face,
            Err(why) => {
                let default = self.shared.partitions.default();
                let response = default.misdirected(request, Some(Peer(peer)), &why);
                let status = response.status().as_u16();
                http.answered(method.as_str(), None, status, begun.elapsed());
                return response;
            }
        };
        if face.is_beside(request.uri().path()) {
            return face.beside.clone().answer(request, peer).await;
        }
        let peer = Some(Peer(peer));
        if self.full {
            return face.api.turn_away(request, peer);
        }
        let served = face.api.respond(request, peer).await;
        let status = served.response.status().as_u16();
        http.answered(method.as_str(), served.route, status, begun.elapsed());
        if let Some(requests) = &face.requests {
            requests.count();
        }
        served.response
    }
}
