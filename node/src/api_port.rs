//! The API's port: the REST API with its request metrics, and endpoints without a token. Each
//! partition has an API of its own. Requests are routed by the routes in the cluster's state, or by
//! the listener that received them; a request that matches no partition is rejected.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use http::{Request, Response};
use percent_encoding::percent_decode_str;
use placement_model::Cluster;
use placement_model::cluster::RoutedBy;
use placement_model::types::{PartitionId, PartitionName, RESERVED_SEGMENTS};
use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::partitions::{PartitionApi, Partitions};
use crate::serve::RequestHandler;
use placement_api::http::{Misdirected, PathPrefix, PublicAddress, Served};
use placement_audit::access::Peer;
use placement_cluster::Running;
use placement_cluster::slot::Slot;
use placement_cluster::standards::LACKING;

/// The service on the API's port.
#[derive(Clone)]
pub(crate) struct ApiPort {
    shared: Arc<Shared>,
    /// Whether the maximum number of clients is connected.
    full: bool,
    /// The partition that owns this listener; `None`: routes decide.
    own: Option<Arc<PartitionListener>>,
}

/// A listener of one partition.
struct PartitionListener {
    name: PartitionName,
    /// For requests that need no partition, such as those of load balancers.
    base: Arc<PartitionApi>,
}

struct Shared {
    slot: Arc<Slot>,
    partitions: Arc<Partitions>,
    /// The default partition's API, used while no partition has hosts.
    default: Arc<PartitionApi>,
    metrics: Arc<Metrics>,
}

impl Shared {
    /// The partition of a request, as far as this node knows without asking another one.
    fn find_partition(
        &self,
        request: &Request<Body>,
        own: Option<&PartitionListener>,
    ) -> Result<Arc<PartitionApi>, UnmatchedRequest> {
        let path = percent_decode_str(request.uri().path()).decode_utf8_lossy();
        let base = own.map_or(&self.default, |own| &own.base);
        // Load balancers send these requests to a node, with any host name.
        if path == "/" || base.is_open(&path) {
            return Ok(base.clone());
        }
        let public = self.default.api.public();
        let is_default_partition_path =
            own.is_none() && is_default_partition_path(&public.prefix, &path);
        if let Some(running) = self.running() {
            let applied = running.replica.views.current();
            let host = || public.host(request);
            match self.owner(&applied.cluster, own, &path, host) {
                Ok(owner)
                    if is_default_partition_path || own.is_some() || !owner.id.is_default() =>
                {
                    return Ok(self.partition_api(owner));
                }
                _ => {}
            }
        } else if is_default_partition_path {
            // The backend waits until this node belongs to a cluster, and then checks the
            // partition.
            return Ok(self.default.clone());
        }
        Err(UnmatchedRequest {
            path: path.into_owned(),
            host: public.host(request),
        })
    }

    /// The partition of a request that matches none in this node's state, which may lag behind.
    async fn find_partition_again(
        &self,
        unsure: UnmatchedRequest,
        own: Option<&PartitionListener>,
    ) -> Result<Arc<PartitionApi>, Misdirected> {
        let UnmatchedRequest { path, host } = unsure;
        let Some(running) = self.running() else {
            return Err(Misdirected::Unknown(match self.slot.get() {
                Some(_) => LACKING.to_owned(),
                None => self.slot.outside(),
            }));
        };
        // If no leader answers, the current state is used.
        let _ = running.linearize(Instant::now() + self.slot.wait()).await;
        let applied = running.replica.views.current();
        let owner = self.owner(&applied.cluster, own, &path, || host)?;
        Ok(self.partition_api(owner))
    }

    fn owner(
        &self,
        cluster: &Cluster,
        own: Option<&PartitionListener>,
        path: &str,
        host: impl FnOnce() -> Option<String>,
    ) -> Result<Owner, Misdirected> {
        let Some(PartitionListener { name, .. }) = own else {
            return owner(cluster, self.default.api.public(), path, host);
        };
        let found = cluster.partition_named(name.as_str());
        let (id, _) = found.ok_or_else(|| Misdirected::NoPartition(name.clone()))?;
        let (name, by) = (name.clone(), None);
        Ok(Owner { id, name, by })
    }

    fn partition_api(&self, Owner { id, name, by }: Owner) -> Arc<PartitionApi> {
        self.partitions.partition_api(id, &name, by)
    }

    /// The running member, once its state contains the partitions.
    fn running(&self) -> Option<Arc<Running>> {
        let running = self.slot.get()?;
        running.has_standards().then_some(running)
    }
}

/// The routing attributes of a request that matches no partition in this node's state.
struct UnmatchedRequest {
    path: String,
    host: Option<String>,
}

/// The partition that owns a request.
struct Owner {
    id: PartitionId,
    name: PartitionName,
    /// The matching route; `None`: the request arrived at the partition's own listener.
    by: Option<RoutedBy>,
}

/// The owner of a request by the routes of the cluster.
fn owner(
    cluster: &Cluster,
    public: &PublicAddress,
    path: &str,
    host: impl FnOnce() -> Option<String>,
) -> Result<Owner, Misdirected> {
    let mut asked = None;
    let host = || {
        asked = host();
        asked.clone()
    };
    let routed = cluster.route(path, host);
    let (id, by) = routed.ok_or(Misdirected::Host(asked))?;
    if let RoutedBy::Prefix(prefix) = &by
        && prefix.path().covers(&public.prefix)
    {
        return Err(Misdirected::Prefix {
            partition: prefix.clone(),
            api: public.prefix.clone(),
        });
    }
    let is_alone = cluster.partitions().next().is_none();
    if id.is_default() && !is_alone && !is_default_partition_path(&public.prefix, path) {
        return Err(Misdirected::Path(path.to_owned()));
    }
    let name = cluster
        .name_of(id)
        .expect("routes lead to existing partitions");
    let by = Some(by);
    Ok(Owner { id, name, by })
}

/// Whether a path belongs to the default partition's API, which is below this prefix.
fn is_default_partition_path(prefix: &PathPrefix, path: &str) -> bool {
    let Some(below) = prefix.rest_of(path) else {
        return false;
    };
    let first = below.trim_start_matches('/').split('/').next();
    !prefix.is_root() || first.is_some_and(|first| RESERVED_SEGMENTS.contains(&first))
}

impl ApiPort {
    pub(crate) fn new(slot: Arc<Slot>, partitions: Arc<Partitions>, metrics: Arc<Metrics>) -> Self {
        let name = PartitionName::default();
        let default =
            partitions.partition_api(PartitionId::DEFAULT, &name, Some(RoutedBy::AnyHost));
        Self {
            shared: Arc::new(Shared {
                slot,
                partitions,
                default,
                metrics,
            }),
            full: false,
            own: None,
        }
    }

    /// Answers clients beyond the limit of connections.
    pub(crate) fn full(&self) -> Self {
        Self {
            full: true,
            ..self.clone()
        }
    }

    /// Serves a partition's own listener.
    pub(crate) fn for_partition(&self, name: PartitionName) -> Self {
        let base = self.shared.partitions.unknown_partition_api(&name);
        Self {
            own: Some(Arc::new(PartitionListener { name, base })),
            ..self.clone()
        }
    }
}

impl RequestHandler for ApiPort {
    async fn answer(self, request: Request<Body>, peer: SocketAddr) -> Response<Body> {
        let begun = Instant::now();
        let method = request.method().clone();
        let http = &self.shared.metrics.http;
        let _in_flight = http.begin();
        let own = self.own.as_deref();
        let routed = match self.shared.find_partition(&request, own) {
            Ok(partition_api) => Ok(partition_api),
            Err(unsure) => Box::pin(self.shared.find_partition_again(unsure, own)).await,
        };
        let partition_api = match routed {
            Ok(partition_api) => partition_api,
            Err(why) => {
                let default = self.shared.partitions.default();
                let response = default.misdirected(request, Some(Peer(peer)), &why);
                http.answered(method.as_str(), None, &response, begun.elapsed());
                return response;
            }
        };
        if partition_api.is_open(request.uri().path()) {
            return Box::pin(partition_api.open.clone().answer(request, peer)).await;
        }
        let peer = Some(Peer(peer));
        if self.full {
            let response = partition_api.api.turn_away(request, peer);
            http.answered(method.as_str(), None, &response, begun.elapsed());
            return response;
        }
        let Served { response, route } = partition_api.api.respond(request, peer).await;
        http.answered(method.as_str(), route, &response, begun.elapsed());
        partition_api.requests.inc();
        response
    }
}

#[cfg(test)]
mod tests {
    use placement_model::command::{Command, CreatePartition, RoutePartition, Stamped};
    use placement_model::types::{PartitionId, Routes, Timestamp};

    use super::*;

    /// A cluster with partitions north, below /north, and south, for a host.
    fn clouds() -> Cluster {
        let mut cluster = Cluster::default();
        let host = |text: &str| placement_model::types::Route::Host(text.parse().unwrap());
        let prefix = |text: &str| placement_model::types::Route::Prefix(text.parse().unwrap());
        let routes = |route| -> Routes { vec![route].try_into().unwrap() };
        for command in [
            Command::RoutePartition(RoutePartition {
                name: PartitionName::default(),
                routes: routes(host("default.example")),
            }),
            Command::CreatePartition(CreatePartition {
                name: "north".parse().unwrap(),
                routes: routes(prefix("/north")),
            }),
            Command::CreatePartition(CreatePartition {
                name: "south".parse().unwrap(),
                routes: routes(host("south.example")),
            }),
        ] {
            let (_, changes) = cluster.apply(&Stamped {
                at: Timestamp(1),
                write_id: None,
                command,
                partition: PartitionId::DEFAULT,
                routes: 0,
                request_id: None,
            });
            cluster.commit(&changes);
        }
        cluster
    }

    fn owner_of(prefix: &str, host: Option<&str>, path: &str) -> Result<String, Misdirected> {
        let public = PublicAddress {
            prefix: prefix.parse().unwrap(),
            ..PublicAddress::default()
        };
        let mut request = Request::builder().uri(path);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let request = request.body(Body::empty()).unwrap();
        owner(&clouds(), &public, path, || public.host(&request))
            .map(|owner| owner.name.to_string())
    }

    #[test]
    fn request_is_routed_by_its_path_or_its_host() {
        let default = Some("default.example:8778");
        for (host, path, name) in [
            (default, "/traits", "default"),
            (default, "/north/traits", "north"),
            (None, "/north", "north"),
            (Some("SOUTH.example."), "/traits", "south"),
            (Some("south.example"), "/no/such/path", "south"),
        ] {
            assert_eq!(owner_of("", host, path).as_deref(), Ok(name), "{path}");
        }
        assert_eq!(
            owner_of("/p", default, "/p/no/such/path").as_deref(),
            Ok("default")
        );
    }

    #[test]
    fn request_of_no_partition_is_refused() {
        let default = Some("default.example");
        let host = |host: Option<&str>| Err(Misdirected::Host(host.map(str::to_owned)));
        let path = |path: &str| Err(Misdirected::Path(path.to_owned()));
        assert_eq!(owner_of("", None, "/traits"), host(None));
        assert_eq!(owner_of("", Some("x"), "/traits"), host(Some("x")));
        assert_eq!(
            owner_of("", default, "/nroth/traits"),
            path("/nroth/traits")
        );
        assert_eq!(owner_of("/p", default, "/traits"), path("/traits"));
    }

    #[test]
    fn default_api_below_a_prefix_of_a_partition_refuses_both() {
        let default = Some("default.example");
        for path in ["/north/traits", "/north/placement/traits"] {
            let refused = owner_of("/north/placement", default, path);
            assert!(
                matches!(refused, Err(Misdirected::Prefix { .. })),
                "{refused:?}"
            );
        }
    }
}
