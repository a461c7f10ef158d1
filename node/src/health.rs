//! `/livez`: the process runs. `/readyz`: this node can serve what it promises.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::cluster::replica::{REMOVED, Replica};
use crate::cluster::slot::Slot;
use crate::cluster::standards::LACKING;
use crate::cluster::{Running, Settings};
use crate::disk_space;
use crate::recent::Recent;
use crate::tasks::Tasks;
use placement_api::backend::Readiness;

/// How long a leader may be missing, and how long the question to it may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Greatest age of an answer about this node's standing in the cluster. The question needs no token, and each new answer
/// costs the leader a round.
const FRESH: Duration = Duration::from_millis(200);
/// How long monitors wait for what is not known at once.
pub(crate) const SOON: Duration = Duration::from_millis(250);

/// Answers whether the process runs.
pub(crate) const LIVEZ: &str = "/livez";
/// Answers whether this node is ready.
pub(crate) const READYZ: &str = "/readyz";

/// What health is judged by.
#[derive(Clone)]
pub(crate) struct HealthChecks {
    pub(crate) slot: Arc<Slot>,
    pub(crate) config: Arc<Settings>,
    /// Whether this node goes on answering while it is cut off.
    pub(crate) answers_cut_off: bool,
    pub(crate) tasks: Tasks,
    /// Whether the cluster lets this node keep its promises.
    pub(crate) in_cluster: Recent<Result<Option<String>, String>>,
    /// The line about the free room on the disk.
    pub(crate) room: Recent<String>,
}

impl HealthChecks {
    /// The two routes.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route(LIVEZ, get(|| async { "ok\n" }))
            .route(READYZ, get(readyz))
            .with_state(self)
    }

    /// Why this node is not ready, if it is not.
    pub(crate) async fn not_ready(&self) -> Option<String> {
        self.readiness(Duration::MAX).await.err()
    }

    /// Whether this node is ready, as far as that is known soon.
    pub(crate) async fn is_ready(&self) -> bool {
        self.readiness(SOON).await.is_ok()
    }

    /// Whether this node is ready; if it is although it is cut off, as `[reads] default` has it, then why that is so.
    async fn readiness(&self, patience: Duration) -> Result<Option<String>, String> {
        if let Some(reason) = self.slot.leaving.why() {
            return Err(reason.to_owned());
        }
        if let Some(name) = self.tasks.ended() {
            return Err(format!("the task of {name} has ended; restart this node"));
        }
        let running = self.slot.get().ok_or_else(|| self.slot.outside())?;
        let replica = &running.replica;
        if let Some(failure) = replica.failure() {
            return Err(format!("this node is quarantined: {failure}"));
        }
        if replica.is_removed() {
            return Err(REMOVED.to_owned());
        }
        let standing = self.clone().standing(running);
        let is_fresh = |age, _: &_| age < FRESH;
        let known = self.in_cluster.get(is_fresh, patience, standing).await;
        known.unwrap_or_else(|| {
            Err("no leader has confirmed so far that this node is up to date".to_owned())
        })
    }

    async fn standing(self, running: Arc<Running>) -> Result<Option<String>, String> {
        let replica = &running.replica;
        let may_be_alone = self.answers_cut_off;
        let mut alone = without_leader(replica, may_be_alone).await;
        if let Some(reason) = alone.take_if(|_| !may_be_alone) {
            return Err(reason);
        }
        if !running.has_standards() {
            return Err(LACKING.to_owned());
        }
        let lag = replica.apply_lag();
        if lag > self.config.cluster.ready_lag_max {
            return Err(format!("{lag} committed log entries are not applied yet"));
        }
        if alone.is_none() {
            let confirmed = running.linearize(Instant::now() + PATIENCE);
            let unavailable = confirmed.await.err();
            alone = unavailable.map(|words| format!("reads cannot be confirmed: {words}"));
        }
        match alone {
            Some(reason) if !may_be_alone => Err(reason),
            alone => Ok(alone),
        }
    }

    /// A line about the disk. A node whose disk is nearly full is ready: it reads and takes away.
    async fn free_room(self) -> String {
        let min = self.config.disk.min_free_bytes;
        if min == 0 {
            return String::new();
        }
        match disk_space::free(&self.config.data_dir).await {
            Some(free) if free < min => format!(
                "the disk is nearly full: {free} bytes are free, [disk] min_free_bytes is {min}\n"
            ),
            Some(free) => format!("{free} bytes are free on the disk\n"),
            None => String::new(),
        }
    }
}

/// Why no leader confirms how far this node should be, as far as it knows. A node that answers all the same does not
/// wait for a leader again and again.
async fn without_leader(replica: &Replica, may_be_alone: bool) -> Option<String> {
    if may_be_alone && replica.freshness.is_cut_off() {
        return Some("the leader is not reached".to_owned());
    }
    // While one leader hands over to the next, no node knows one: a balancer would find none ready.
    replica.other_leader(None, Instant::now() + PATIENCE).await;
    let leader = replica.leader();
    leader.is_none().then(|| "no leader is known".to_owned())
}

impl Readiness for HealthChecks {
    fn why_not(&self) -> BoxFuture<'_, Option<String>> {
        self.not_ready().boxed()
    }
}

async fn readyz(State(checks): State<HealthChecks>) -> Response {
    let alone = match checks.readiness(Duration::MAX).await {
        Ok(None) => String::new(),
        Ok(Some(reason)) => format!("cut off, and writes are refused: {reason}\n"),
        Err(reason) => {
            return (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response();
        }
    };
    let room = checks
        .room
        .get(|age, _| age < FRESH, SOON, checks.clone().free_room());
    // While the disk hangs, there is no line.
    let room = room.await.unwrap_or_default();
    format!("ready\n{alone}{room}").into_response()
}
