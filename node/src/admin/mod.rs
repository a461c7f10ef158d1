//! The door for operators: HTTP and JSON on a listener of its own.
//!
//! | request | does |
//! |---|---|
//! | `GET /v1/status` | this node's [`NodeStatus`](placement_wire::NodeStatus) |
//! | `POST /v1/init` with `{"members": {"ID": "host:port"}}`, or nothing | forms a cluster of these nodes, or of this one alone |
//! | `POST /v1/members` with a [`NewMember`] | adds a node without data as learner |
//! | `POST /v1/members/{id}/promote` | makes a learner that has caught up a voter |
//! | `POST /v1/members/{id}/demote` | makes a voter a learner |
//! | `DELETE /v1/members/{id}` | takes a node out |
//! | `GET /v1/topology` | which losses are survived, and what reads and writes cost where: a [`Topology`](placement_wire::Topology) |
//! | `POST /v1/join-tokens` with a [`NewJoinToken`], or nothing | makes a token with which one node joins, and shows it |
//! | `GET /v1/join-tokens` | what became of the tokens |
//! | `DELETE /v1/join-tokens/{id}` | takes a token back |
//! | `POST /v1/leader` with `{"to": id or null}` | hands leadership over; gives `{"leader": id}` |
//! | `POST /v1/drain` | has `/readyz` say 503 on this node and hands its leadership over; gives `{"leader": id or null}` |
//! | `DELETE /v1/drain` | takes that back |
//! | `GET /v1/check` | recounts this node's state; gives a [`CheckReport`](placement_wire::CheckReport) |
//! | `POST /v1/compact` | writes this node's state down and drops the log entries it covers; not a backup |
//! | `GET /v1/backup` | the state of the cluster, as a file from which a new cluster can begin |
//! | `GET /v1/partitions` | the partitions of the cluster: a list of [`Partition`](placement_wire::Partition)s |
//! | `POST /v1/partitions` with `{"name": "...", "hosts": ["..."], "prefixes": ["/..."]}` | makes a partition, whose requests are those for these hosts or below these paths |
//! | `PUT /v1/partitions/{name}` with `{"hosts": [...], "prefixes": [...]}` | gives it these routes in place of those that it has |
//! | `DELETE /v1/partitions/{name}`, with `?force=true` also one in which there are allocations | deletes it with all that is in it |
//! | `status`, `check`, `drain` and `compact` below `/v1/nodes/{id}/` | the same of another node, through this one |
//! | `GET /metrics`, `/livez`, `/readyz` | for monitoring |
//!
//! With `?force=true` votes are given and taken although `[cluster] survive` is against it.
//!
//! Any node answers; what only the leader can do is passed on to it. Errors have the form of the
//! REST API's: `{"errors": [{"status", "title", "detail"}]}`, and a `"code"` where nothing was committed.

mod backup;
mod check;
mod join_tokens;
mod network_door;
mod partitions;
mod relay;
mod status;
mod topology;
mod trail;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, delete, get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::cluster::bootstrap::Bootstrap;
use crate::cluster::membership::MembershipChange;
use crate::cluster::succession::step_aside;
use crate::cluster::{Refused, Running};
use crate::disk_space::DiskSpace;
use crate::doors::{ReadDoor, WriteDoor};
use crate::health::HealthChecks;
use crate::http::{NOTHING_COMMITTED, Policy};
use crate::metrics::{self, Metrics};
pub(crate) use backup::{OneAtATime, backup_report, rfc3339};
pub use join_tokens::NewJoinToken;
pub(crate) use network_door::{NetworkDoor, enter};
pub(crate) use relay::Inner;
pub(crate) use status::node_status;
use trail::Detail;
pub(crate) use trail::{Recording, recorded};

/// All routes, for those who ask for another one.
const ROUTES: [&str; 24] = [
    "GET /v1/status",
    "POST /v1/init",
    "POST /v1/members",
    "POST /v1/members/{id}/promote",
    "POST /v1/members/{id}/demote",
    "DELETE /v1/members/{id}",
    "GET /v1/topology",
    "POST /v1/join-tokens",
    "GET /v1/join-tokens",
    "DELETE /v1/join-tokens/{id}",
    "POST /v1/leader",
    "POST /v1/drain",
    "DELETE /v1/drain",
    "GET /v1/check",
    "POST /v1/compact",
    "GET /v1/backup",
    "GET /v1/partitions",
    "POST /v1/partitions",
    "PUT /v1/partitions/{name}",
    "DELETE /v1/partitions/{name}",
    "/v1/nodes/{id}/ with status, check, drain or compact",
    "GET /metrics",
    "GET /livez",
    "GET /readyz",
];

/// What the door needs.
#[derive(Clone)]
pub(crate) struct Admin {
    pub(crate) bootstrap: Arc<Bootstrap>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) checks: HealthChecks,
    /// Held while the state is recounted, which takes as much memory again: once at a time.
    pub(crate) checking: Arc<tokio::sync::Mutex<()>>,
    pub(crate) backups: OneAtATime,
    /// Of the default partition, as commands for the whole cluster are.
    pub(crate) write: Arc<dyn WriteDoor>,
    pub(crate) read: Arc<dyn ReadDoor>,
    /// The rules in force: of the default partition first, then of those that have their own, by name.
    pub(crate) policies: Vec<(String, Arc<Policy>)>,
}

/// A node to be added.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewMember {
    /// A number that no node of this cluster has ever had.
    pub id: u64,
    /// Where the other nodes reach it, `host:port`.
    pub peer: String,
    /// Where clients reach its REST API; empty: as it says itself.
    #[serde(default)]
    pub api: String,
    /// Where operators reach it; empty: as it says itself.
    #[serde(default)]
    pub admin: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Init {
    #[serde(default)]
    members: BTreeMap<u64, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Transfer {
    #[serde(default)]
    to: Option<u64>,
}

/// Whether a change is wanted although something speaks against it: what is to be survived, or what is in use.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Forced {
    #[serde(default)]
    force: bool,
}

impl Admin {
    /// `/metrics`.
    pub(crate) fn numbers(self) -> Router {
        Router::new()
            .route("/metrics", get(metrics))
            .with_state(self)
    }

    /// All routes but the health checks and `/metrics`.
    pub(crate) fn router(self) -> Router {
        self.clone()
            .of_one_node()
            .route("/v1/init", post(init))
            .route("/v1/members", post(add))
            .route("/v1/members/{id}", delete(remove))
            .route("/v1/members/{id}/promote", post(promote))
            .route("/v1/members/{id}/demote", post(demote))
            .route("/v1/topology", get(topology::topology))
            .route(
                "/v1/join-tokens",
                get(join_tokens::list).post(join_tokens::create),
            )
            .route("/v1/join-tokens/{id}", delete(join_tokens::revoke))
            .route("/v1/leader", post(transfer))
            .route("/v1/backup", get(backup::backup))
            .route(
                "/v1/partitions",
                get(partitions::list).post(partitions::create),
            )
            .route(
                "/v1/partitions/{name}",
                delete(partitions::delete).put(partitions::route),
            )
            .route("/v1/nodes/{id}/{*what}", any(relay::relay))
            .fallback(|| async { error(StatusCode::NOT_FOUND, &no_such_route()) })
            .with_state(self)
    }

    /// What each node does for itself, also when it is asked through another.
    fn of_one_node<S>(self) -> Router<S> {
        Router::new()
            .route("/v1/status", get(status))
            .route("/v1/drain", post(drain).delete(undrain))
            .route("/v1/check", get(check))
            .route("/v1/compact", post(compact))
            .with_state(self)
    }

    /// The running member, for what a node cannot do before it is one.
    fn running(&self) -> Result<Arc<Running>, Box<Response>> {
        let running = self.bootstrap.slot.member();
        running.map_err(|refused| Box::new(refusal(&refused)))
    }

    async fn change(&self, change: MembershipChange) -> Response {
        match self.bootstrap.slot.change(change).await {
            Ok(()) => StatusCode::NO_CONTENT.into_response(),
            Err(refused) => refusal(&refused),
        }
    }
}

fn refusal(refused: &Refused) -> Response {
    let status = match refused {
        Refused::NotFound(_) => StatusCode::NOT_FOUND,
        Refused::Conflict(_) => StatusCode::CONFLICT,
        Refused::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        Refused::NothingCommitted(reason) => return nothing_committed(reason),
    };
    error(status, &refused.to_string())
}

/// 503 with the code by which clients know that they may ask again.
fn nothing_committed(reason: &str) -> Response {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    let body = json!({
        "errors": [{
            "status": status.as_u16(),
            "title": status.canonical_reason().unwrap_or_default(),
            "code": NOTHING_COMMITTED,
            "detail": reason,
        }]
    });
    (status, Json(body)).into_response()
}

fn no_such_route() -> String {
    format!(
        "there is no such route here; there are {}",
        ROUTES.join(", ")
    )
}

fn error(status: StatusCode, detail: &str) -> Response {
    let body = json!({
        "errors": [{
            "status": status.as_u16(),
            "title": status.canonical_reason().unwrap_or_default(),
            "detail": detail,
        }]
    });
    (status, Json(body)).into_response()
}

/// A JSON body; an empty one is the default, where there is one.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Box<Response>> {
    serde_json::from_slice(body).map_err(|wrong| {
        Box::new(error(
            StatusCode::BAD_REQUEST,
            &format!("the body: {wrong}"),
        ))
    })
}

fn read_or_default<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, Box<Response>> {
    if body.is_empty() {
        Ok(T::default())
    } else {
        read(body)
    }
}

async fn metrics(State(admin): State<Admin>) -> Response {
    let space = DiskSpace::of(admin.bootstrap.config.data_dir.clone()).await;
    let numbers = admin.metrics.encode(space);
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], numbers).into_response()
}

async fn status(State(admin): State<Admin>) -> Response {
    Json(status::full_status(&admin).await).into_response()
}

async fn init(State(admin): State<Admin>, body: Bytes) -> Response {
    let init: Init = match read_or_default(&body) {
        Ok(init) => init,
        Err(response) => return *response,
    };
    let named: Vec<String> = (init.members.iter())
        .map(|(id, peer)| format!("{id}={peer}"))
        .collect();
    let said = format!("form a cluster of {}", named.join(", "));
    detailed(
        said,
        match admin.bootstrap.form_on_demand(init.members).await {
            Ok(()) => StatusCode::NO_CONTENT.into_response(),
            Err(reason) => error(StatusCode::CONFLICT, &reason),
        },
    )
}

/// The response, with what was asked for.
fn detailed(said: String, mut response: Response) -> Response {
    response.extensions_mut().insert(Detail(said));
    response
}

async fn add(State(admin): State<Admin>, body: Bytes) -> Response {
    let member: NewMember = match read(&body) {
        Ok(member) => member,
        Err(response) => return *response,
    };
    let said = format!(
        "add node {}, peer {:?}, api {:?}, admin {:?}",
        member.id, member.peer, member.api, member.admin
    );
    let change = MembershipChange::Add {
        id: member.id,
        peer: member.peer,
        api: member.api,
        admin: member.admin,
    };
    detailed(said, admin.change(change).await)
}

async fn promote(
    State(admin): State<Admin>,
    Path(id): Path<u64>,
    Query(Forced { force }): Query<Forced>,
) -> Response {
    let change = MembershipChange::Promote { id, force };
    admin.change(change).await
}

async fn demote(
    State(admin): State<Admin>,
    Path(id): Path<u64>,
    Query(Forced { force }): Query<Forced>,
) -> Response {
    let change = MembershipChange::Demote { id, force };
    admin.change(change).await
}

async fn remove(
    State(admin): State<Admin>,
    Path(id): Path<u64>,
    Query(Forced { force }): Query<Forced>,
) -> Response {
    let change = MembershipChange::Remove { id, force };
    admin.change(change).await
}

async fn transfer(State(admin): State<Admin>, body: Bytes) -> Response {
    match read_or_default::<Transfer>(&body) {
        Ok(Transfer { to }) => {
            let said = match to {
                Some(to) => format!("node {to} is to lead"),
                None => "another node is to lead".to_owned(),
            };
            let transferred = admin.bootstrap.slot.transfer_leader(to).await;
            let response = match transferred {
                Ok(leader) => Json(json!({ "leader": leader })).into_response(),
                Err(refused) => refusal(&refused),
            };
            detailed(said, response)
        }
        Err(response) => *response,
    }
}

/// `/readyz` first: who is asked next for a leader must not be sent here.
async fn drain(State(admin): State<Admin>) -> Response {
    let drained = &admin.bootstrap.slot.leaving.drained;
    drained.store(true, Ordering::Relaxed);
    tracing::info!("an operator has this node drained");
    let Some(running) = admin.bootstrap.slot.get() else {
        return Json(json!({ "leader": null })).into_response();
    };
    let patience = Duration::from_millis(2 * admin.bootstrap.config.raft.election_max_ms);
    match step_aside(&running, patience).await {
        Ok(leader) => Json(json!({ "leader": leader })).into_response(),
        Err(reason) => error(StatusCode::SERVICE_UNAVAILABLE, &reason),
    }
}

async fn undrain(State(admin): State<Admin>) -> Response {
    let drained = &admin.bootstrap.slot.leaving.drained;
    drained.store(false, Ordering::Relaxed);
    tracing::info!("an operator has this node take requests again");
    StatusCode::NO_CONTENT.into_response()
}

async fn check(State(admin): State<Admin>) -> Response {
    let running = match admin.running() {
        Ok(running) => running,
        Err(response) => return *response,
    };
    let Ok(_one) = admin.checking.try_lock() else {
        return error(StatusCode::CONFLICT, "this node is being checked already");
    };
    match check::report(&running.replica, &*admin.bootstrap.env.offload).await {
        Some(report) => Json(report).into_response(),
        None => error(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the check has panicked, which is a bug; the log of this node says where",
        ),
    }
}

async fn compact(State(admin): State<Admin>) -> Response {
    let running = match admin.running() {
        Ok(running) => running,
        Err(response) => return *response,
    };
    match running.compact().await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(refused) => error(StatusCode::SERVICE_UNAVAILABLE, &refused.to_string()),
    }
}
