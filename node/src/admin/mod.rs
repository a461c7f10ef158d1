//! The admin listener: HTTP and JSON.
//!
//! | request | effect or response |
//! |---|---|
//! | `GET /v1/status` | this node's `NodeStatus` |
//! | `POST /v1/init` | forms a cluster of the given nodes, or of this node alone |
//! | `POST /v1/members/{id}/promote` | makes a learner that has caught up a voter |
//! | `POST /v1/members/{id}/demote` | makes a voter a learner |
//! | `DELETE /v1/members/{id}` | removes a node from the cluster |
//! | `GET /v1/topology` | tolerated failures; latency of reads and writes by site: a `Topology` |
//! | `POST /v1/join-tokens` | creates a token with which one node joins, and shows it |
//! | `GET /v1/join-tokens` | the tokens and their states |
//! | `DELETE /v1/join-tokens/{id}` | revokes an unused token |
//! | `POST /v1/leader` | hands leadership over; returns `{"leader": id}` |
//! | `POST /v1/drain` | drains this node: fails its `/readyz` and hands leadership over |
//! | `DELETE /v1/drain` | ends the drain |
//! | `GET /v1/check` | verifies this node's state; returns a `CheckReport` |
//! | `POST /v1/compact` | makes this node's state durable and compacts its log; not a backup |
//! | `GET /v1/backup` | the state of the cluster, as a file from which a new cluster can start |
//! | `GET /v1/partitions` | the partitions of the cluster: a list of `Partition`s |
//! | `POST /v1/partitions` | creates a partition |
//! | `PUT /v1/partitions/{name}` | replaces the routes of a partition |
//! | `DELETE /v1/partitions/{name}` | deletes a partition with its content |
//! | `PUT /v1/partitions/{name}/content` | imports a backup; returns an `ImportReport` |
//! | any method, `/v1/placement/{partition}/{path}` | the partition's REST API, without a token |
//! | `GET /v1/log` | the last lines of this node's log, up to 512 KiB, as text |
//! | `GET /v1/settings` | the settings with which this node was started, without secrets, as TOML |
//! | `GET /v1/metrics` | this node's `/metrics` |
//! | `GET /v1/host` | kernel, memory, load and limits of the host and the process, as text |
//! | any method, `/v1/nodes/{id}/…` | the same on another node, through this one |
//! | `GET /web/…` | pages for a browser, see `placement-web` |
//! | `GET /metrics`, `/livez`, `/readyz` | for monitoring |
//! | `GET /metrics/providers` | each provider's inventories, under openstack-exporter's names |
//!
//! Bodies and parameters:
//!
//! * `POST /v1/init`: `{"members": {"ID": "host:port"}}`. An empty body forms a cluster of this
//!   node alone.
//! * `POST /v1/join-tokens`: `{"ttl_s": 3600, "replaces": id or null, "though_reachable": false}`,
//!   or an empty body.
//! * `POST /v1/leader`: `{"to": id or null}`. Without an id the best voter leads.
//! * `POST /v1/drain`: returns `{"leader": id or null}`.
//! * `POST /v1/partitions`: `{"name": "...", "hosts": ["..."], "prefixes": ["/..."]}`. The
//!   partition receives the requests for these hosts or below these paths.
//! * `PUT /v1/partitions/{name}`: `{"hosts": [...], "prefixes": [...]}`.
//! * `DELETE /v1/partitions/{name}?force=true`: also deletes a partition that has allocations.
//! * `PUT /v1/partitions/{name}/content`: the body is a backup, whose default partition is
//!   imported. The target must be empty and have no routes. The report contains the digest of the
//!   content.
//! * `/v1/nodes/{id}/`: accepts `status`, `check`, `drain`, `compact`, `log`, `settings`,
//!   `metrics`, `host` and `placement`.
//! * `GET /metrics/providers?partition=NAME`: of this partition instead of the default one.
//! * `?force=true` on promotions, demotions and removals: ignores `[cluster] survive`.
//!
//! If no leader answers, the lists of tokens and partitions show what this node has applied. Any
//! node answers; it forwards requests that only the leader can carry out. Errors have the form of
//! the REST API's: `{"errors": [{"status", "title", "detail"}]}`, with a `"code"` if nothing was
//! committed. Types are those of `placement-wire`.

mod backup;
mod check;
mod content;
mod join_tokens;
mod network_listener;
mod pages;
mod partitions;
mod placement;
mod relay;
mod settings;
mod status;
mod support;
mod topology;
mod trail;
mod upload;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, delete, get, post, put};
use axum::{Json, Router};
use placement_model::types::{PartitionName, PathPrefix};
use placement_wire::upstream::{ErrorDetail, Errors};
use placement_wire::{Drained, InitialMembers, LeadershipTransfer, NewLeader};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use crate::health::{HealthChecks, SOON};
use crate::metrics::{self, Metrics};
use crate::partitions::{PartitionSection, Partitions};
pub(crate) use backup::backup_report;
pub(crate) use network_listener::{NetworkListener, enter};
pub(crate) use pages::{User, pages, response, style, with_pages};
pub(crate) use partitions::described as described_partition;
use placement_api::http::NOTHING_COMMITTED;
use placement_base::backend::{ReadBackend, WriteBackend};
use placement_base::log_messages::log;
use placement_cluster::leadership::preference::step_aside;
use placement_cluster::members::membership::MembershipChange;
use placement_cluster::start::Bootstrap;
use placement_cluster::{Refused, Running};
use placement_policy::Policy;
pub(crate) use relay::Inner;
pub use settings::AdminSection;
pub(crate) use status::node_status;
pub(crate) use trail::{Detail, Recording, recorded};

/// Maximum time that a scrape of `/metrics/providers` waits for another scrape to end.
const SCRAPE_WAIT: Duration = Duration::from_secs(5);

/// Shared state of the handlers of the admin API.
#[derive(Clone)]
pub(crate) struct Admin {
    pub(crate) bootstrap: Arc<Bootstrap>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) checks: HealthChecks,
    /// Held while the state is verified: one check at a time, because it takes as much memory as
    /// the state.
    pub(crate) checking: Arc<tokio::sync::Mutex<()>>,
    /// Held while a backup is written: one at a time, because it keeps an old state in memory.
    pub(crate) backups: Arc<tokio::sync::Mutex<()>>,
    /// Held while a backup is imported: one at a time, because it takes as much memory as the state
    /// in it.
    pub(crate) imports: Arc<tokio::sync::Mutex<()>>,
    /// Held while the inventories of all providers are sent: one response at a time, because it
    /// keeps an old state in memory.
    pub(crate) scrapes: Arc<tokio::sync::Mutex<()>>,
    /// Writes in the default partition, such as commands of the whole cluster.
    pub(crate) write: Arc<dyn WriteBackend>,
    pub(crate) read: Arc<dyn ReadBackend>,
    /// The APIs of the partitions.
    pub(crate) partitions: Arc<Partitions>,
    /// The tables `[[partitions]]` of this node.
    pub(crate) sections: Arc<[PartitionSection]>,
    /// All settings in the form of a file, without secrets.
    pub(crate) settings: Arc<str>,
    /// The settings that should be equal on all nodes.
    pub(crate) shared: Arc<BTreeMap<String, String>>,
    /// The setting `[api] prefix`.
    pub(crate) prefix: PathPrefix,
    /// The policies in force: first that of the default partition, then those of partitions with a
    /// policy of their own, by name.
    pub(crate) policies: Vec<(String, Arc<Policy>)>,
}

/// Whether a change ignores `[cluster] survive`, or applies to a partition in use.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Forced {
    force: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfPartition {
    partition: Option<String>,
}

impl Admin {
    /// `/metrics` and the routes below it.
    pub(crate) fn numbers(self) -> Router {
        Router::new()
            .route("/metrics", get(metrics))
            .route("/metrics/providers", get(provider_metrics))
            .with_state(self)
    }

    /// All routes except the health checks and `/metrics`.
    pub(crate) fn router(self) -> Router {
        with_pages(self.routes())
    }

    /// The policy of a partition: its own, or the default partition's.
    fn policy(&self, partition: &str) -> &Policy {
        let own = self.policies.iter().find(|(name, _)| name == partition);
        &own.unwrap_or(&self.policies[0]).1
    }

    /// Whether a partition is shown: to users by its policy, to operators always.
    fn shows(&self, user: Option<&User>, partition: &str) -> bool {
        user.is_none_or(|user| user.may_see(self.policy(partition)))
    }

    /// The routes that the pages use.
    pub(crate) fn routes(self) -> Router {
        router_of(node_routes().into_iter().chain(cluster_routes()))
            .route("/v1/nodes/{id}/{*what}", any(relay::relay))
            .fallback(|| async { no_such_route() })
            .with_state(self)
    }

    /// The routes of a single node, which may be reached through another one.
    fn node_router(self) -> Router {
        router_of(node_routes()).with_state(self)
    }

    /// The running member; an error if this node is not a member of a cluster yet.
    fn running(&self) -> Result<Arc<Running>, Failed> {
        Ok(self.bootstrap.slot.member()?)
    }

    /// The running member, after it has applied every write that was acknowledged before the call.
    /// If no leader answers within a little more than the duration of an election, the current
    /// state is used. Until a leader answers again, later callers wait only for [`SOON`].
    async fn up_to_date(&self) -> Result<Arc<Running>, Failed> {
        let running = self.running()?;
        let patience = if running.replica.freshness.is_cut_off() {
            SOON
        } else {
            self.bootstrap.config.raft.waits().optional_read()
        };
        let _ = running.linearize(Instant::now() + patience).await;
        Ok(running)
    }

    async fn change(&self, change: MembershipChange) -> HandlerResult {
        self.bootstrap.slot.change(change).await?;
        done()
    }
}

/// Method and path, with the handler.
type Route = (&'static str, MethodRouter<Admin>);

fn node_routes() -> [Route; 10] {
    [
        ("GET /v1/status", get(status)),
        ("POST /v1/drain", post(drain)),
        ("DELETE /v1/drain", delete(undrain)),
        ("GET /v1/check", get(check)),
        ("POST /v1/compact", post(compact)),
        ("GET /v1/log", get(support::log)),
        ("GET /v1/settings", get(support::settings)),
        ("GET /v1/metrics", get(metrics)),
        ("GET /v1/host", get(support::host)),
        (
            "ANY /v1/placement/{*partition_and_path}",
            any(placement::ask),
        ),
    ]
}

fn cluster_routes() -> [Route; 15] {
    [
        ("POST /v1/init", post(init)),
        ("POST /v1/members/{id}/promote", post(promote)),
        ("POST /v1/members/{id}/demote", post(demote)),
        ("DELETE /v1/members/{id}", delete(remove)),
        ("GET /v1/topology", get(topology::topology)),
        ("POST /v1/join-tokens", post(join_tokens::create)),
        ("GET /v1/join-tokens", get(join_tokens::list)),
        ("DELETE /v1/join-tokens/{id}", delete(join_tokens::revoke)),
        ("POST /v1/leader", post(transfer)),
        ("GET /v1/backup", get(backup::backup)),
        ("GET /v1/partitions", get(partitions::list)),
        ("POST /v1/partitions", post(partitions::create)),
        ("PUT /v1/partitions/{name}", put(partitions::route)),
        ("DELETE /v1/partitions/{name}", delete(partitions::delete)),
        ("PUT /v1/partitions/{name}/content", put(content::put)),
    ]
}

fn router_of(routes: impl IntoIterator<Item = Route>) -> Router<Admin> {
    let mut router = Router::new();
    for (route, handler) in routes {
        let (_, path) = route.split_once(' ').unwrap_or_default();
        router = router.route(path, handler);
    }
    router
}

fn no_such_route() -> Failed {
    let routes: Vec<&str> = node_routes()
        .into_iter()
        .chain(cluster_routes())
        .map(|(route, _)| route)
        .collect();
    let detail = format!(
        "no such route; the routes are {}, /v1/nodes/{{id}}/ with status, check, drain, compact, \
        log, settings, metrics, host or placement, GET /web/, GET /metrics, GET \
        /metrics/providers, GET /livez, GET /readyz",
        routes.join(", ")
    );
    failed(StatusCode::NOT_FOUND, detail)
}

/// The result of a handler.
type HandlerResult = Result<Response, Failed>;

/// An error response in the form of the API's errors.
pub(crate) struct Failed(Box<Response>);

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        *self.0
    }
}

impl From<Refused> for Failed {
    fn from(refused: Refused) -> Self {
        let status = match &refused {
            Refused::NotFound(_) => StatusCode::NOT_FOUND,
            Refused::Conflict(_) => StatusCode::CONFLICT,
            Refused::NotLeader | Refused::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Refused::NothingCommitted(reason) => {
                // The code tells clients that a retry is safe.
                let status = StatusCode::SERVICE_UNAVAILABLE;
                return coded(status, Some(NOTHING_COMMITTED), reason);
            }
        };
        failed(status, refused)
    }
}

pub(crate) fn failed(status: StatusCode, detail: impl Display) -> Failed {
    coded(status, None, &detail.to_string())
}

/// The empty response of a successful change.
fn done() -> HandlerResult {
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn coded(status: StatusCode, code: Option<&str>, detail: &str) -> Failed {
    let error = ErrorDetail {
        status: status.as_u16(),
        title: status.canonical_reason().map(str::to_owned),
        detail: Some(detail.to_owned()),
        code: code.map(str::to_owned),
        request_id: None,
        claim: None,
    };
    let errors = vec![error];
    let response = (status, Json(Errors { errors })).into_response();
    Failed(Box::new(response))
}

/// Parses a JSON body; the error is a response with status 400.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failed> {
    let read = serde_json::from_slice(body);
    read.map_err(|wrong| failed(StatusCode::BAD_REQUEST, format!("the body: {wrong}")))
}

fn read_or_default<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failed> {
    read(if body.is_empty() { b"{}" } else { body })
}

/// The media type of the body, without parameters and in lower case.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let form = headers.get(header::CONTENT_TYPE)?.to_str();
    let bare = form.unwrap_or_default().split(';').next()?;
    Some(bare.trim().to_ascii_lowercase())
}

async fn metrics(State(admin): State<Admin>) -> Response {
    let numbers = admin.metrics.encode().await;
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], numbers).into_response()
}

async fn provider_metrics(
    State(admin): State<Admin>,
    Query(query): Query<OfPartition>,
) -> HandlerResult {
    let name = query.partition.as_deref().unwrap_or(PartitionName::DEFAULT);
    placement::existing(&admin, name).await?;
    let Ok(turn) = timeout(SCRAPE_WAIT, admin.scrapes.clone().lock_owned()).await else {
        let detail = "/metrics/providers serves one client at a time, and another client reads \
            slowly: scrape it less often, and from one place only";
        let busy = failed(StatusCode::SERVICE_UNAVAILABLE, detail);
        return Ok(([(header::RETRY_AFTER, "30")], busy).into_response());
    };
    let fits = admin.metrics.free_by_flavor(name).await;
    // The partition may have changed in the meantime.
    let (_, view) = placement::existing(&admin, name).await?;
    let form = [(header::CONTENT_TYPE, metrics::CONTENT_TYPE)];
    Ok((form, metrics::provider_text(fits, view.state, turn)).into_response())
}

async fn status(State(admin): State<Admin>) -> Response {
    Json(status::full_status(&admin).await).into_response()
}

async fn init(State(admin): State<Admin>, body: Bytes) -> HandlerResult {
    let InitialMembers { members } = read_or_default(&body)?;
    let named: Vec<String> = (members.iter())
        .map(|(id, peer)| format!("{id}={peer}"))
        .collect();
    let asked = format!("form a cluster of {}", named.join(", "));
    let formed = admin
        .bootstrap
        .form_on_demand(members)
        .await
        .map_err(|reason| failed(StatusCode::CONFLICT, reason));
    detailed(asked, formed.and_then(|()| done()))
}

/// The answer, with the requested action for the audit record.
fn detailed(asked: String, answer: HandlerResult) -> HandlerResult {
    let mut response = answer.into_response();
    response.extensions_mut().insert(Detail(asked));
    Ok(response)
}

/// The member to change, and whether the change is forced.
type OfMember = (State<Admin>, Path<u64>, Query<Forced>);

async fn promote((State(admin), Path(id), Query(Forced { force })): OfMember) -> HandlerResult {
    admin.change(MembershipChange::Promote { id, force }).await
}

async fn demote((State(admin), Path(id), Query(Forced { force })): OfMember) -> HandlerResult {
    admin.change(MembershipChange::Demote { id, force }).await
}

async fn remove((State(admin), Path(id), Query(Forced { force })): OfMember) -> HandlerResult {
    admin.change(MembershipChange::Remove { id, force }).await
}

async fn transfer(State(admin): State<Admin>, body: Bytes) -> HandlerResult {
    let LeadershipTransfer { to } = read_or_default(&body)?;
    let asked = match to {
        Some(to) => format!("transfer leadership to node {to}"),
        None => "transfer leadership".to_owned(),
    };
    let transferred = admin.bootstrap.slot.transfer_leader(to).await;
    let answer = transferred.map(|leader| Json(NewLeader { leader }).into_response());
    detailed(asked, answer.map_err(Failed::from))
}

/// Fails `/readyz` before leadership is handed over, so that load balancers stop sending requests
/// here.
async fn drain(State(admin): State<Admin>) -> HandlerResult {
    admin.bootstrap.slot.leaving.drain(true);
    log!(DRAIN_STARTED, "an operator drains this node");
    let Some(running) = admin.bootstrap.slot.get() else {
        return Ok(Json(Drained { leader: None }).into_response());
    };
    let patience = admin.bootstrap.config.raft.waits().step_aside();
    let leader = step_aside(&running, patience).await.map_err(|reason| {
        let detail = format!("its /readyz returns 503, but it still leads: {reason}");
        // The code tells clients that the outcome is known.
        coded(
            StatusCode::SERVICE_UNAVAILABLE,
            Some(NOTHING_COMMITTED),
            &detail,
        )
    })?;
    Ok(Json(Drained { leader }).into_response())
}

async fn undrain(State(admin): State<Admin>) -> StatusCode {
    admin.bootstrap.slot.leaving.drain(false);
    log!(DRAIN_ENDED, "an operator ends the drain of this node");
    StatusCode::NO_CONTENT
}

async fn check(State(admin): State<Admin>) -> HandlerResult {
    let running = admin.running()?;
    let Ok(turn) = admin.checking.clone().try_lock_owned() else {
        let detail = "a check of this node is already in progress";
        return Err(failed(StatusCode::CONFLICT, detail));
    };
    match check::report(&running.replica, &*admin.bootstrap.env.offload, turn).await {
        Some(report) => Ok(Json(report).into_response()),
        None => {
            let detail = "the check has panicked, which is a bug; the log of this node has the \
                details";
            Err(failed(StatusCode::INTERNAL_SERVER_ERROR, detail))
        }
    }
}

async fn compact(State(admin): State<Admin>) -> HandlerResult {
    let compacted = admin.running()?.compact().await;
    compacted.map_err(|refused| failed(StatusCode::SERVICE_UNAVAILABLE, refused))?;
    done()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The module documentation of this file.
    fn page() -> String {
        let text: Vec<&str> = include_str!("mod.rs")
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        format!("# Routes of the admin listener\n\n{}\n", text.join("\n"))
    }

    #[test]
    fn page_is_up_to_date() {
        let page = page();
        placement_docs::assert_kept("admin-routes.md", &page);
        let routes = node_routes().into_iter().chain(cluster_routes());
        let named = routes.map(|(route, _)| route);
        for route in named.filter(|route| !route.starts_with("ANY ")) {
            assert!(page.contains(&format!("| `{route}`")), "{route}");
        }
    }
}
