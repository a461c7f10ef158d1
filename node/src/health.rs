//! `/livez`: the process runs. `/readyz`: this node can serve what it promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::FutureExt;
use futures::future::BoxFuture;
use openraft::async_runtime::watch::WatchReceiver;
use tokio::time::Instant;

use crate::cluster::removal::REMOVED;
use crate::cluster::seat::Seat;
use crate::cluster::standards::LACKING;
use crate::doors::Readiness;

/// How long the question to the leader may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// What health is judged by.
#[derive(Clone)]
pub(crate) struct HealthChecks {
    pub(crate) seat: Arc<Seat>,
    pub(crate) lag_max: u64,
    pub(crate) stopping: Arc<AtomicBool>,
}

impl HealthChecks {
    /// The two routes.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/livez", get(|| async { "ok\n" }))
            .route("/readyz", get(readyz))
            .with_state(self)
    }

    /// Why this node is not ready, if it is not.
    pub(crate) async fn not_ready(&self) -> Result<(), String> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err("this node is stopping".to_owned());
        }
        let group = self
            .seat
            .now()
            .ok_or_else(|| "this node does not belong to a cluster yet".to_owned())?;
        if let Some(failure) = group.failure() {
            return Err(format!("storage has failed: {failure}"));
        }
        if group.is_removed() {
            return Err(REMOVED.to_owned());
        }
        if group.leader().is_none() {
            return Err("no leader is known".to_owned());
        }
        if !group.has_standards() {
            return Err(LACKING.to_owned());
        }
        let committed = {
            let receiver = group.raft.metrics();
            let metrics = receiver.borrow_watched();
            metrics.cluster_committed.map_or(0, |id| id.index())
        };
        let lag = committed.saturating_sub(group.views.applied_index().unwrap_or(0));
        if lag > self.lag_max {
            return Err(format!("{lag} committed log entries are not applied yet"));
        }
        group
            .linearize(Instant::now() + PATIENCE)
            .await
            .map_err(|unavailable| format!("reads cannot be confirmed: {unavailable}"))
    }
}

impl Readiness for HealthChecks {
    fn why_not(&self) -> BoxFuture<'_, Option<String>> {
        async { self.not_ready().await.err() }.boxed()
    }
}

async fn readyz(State(checks): State<HealthChecks>) -> Response {
    match checks.not_ready().await {
        Ok(()) => (StatusCode::OK, "ready\n").into_response(),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
    }
}
