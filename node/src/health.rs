//! `/livez`: the process runs. `/readyz`: this node can serve requests with the promised
//! consistency.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::recent::Recent;
use placement_base::backend::Readiness;
use placement_base::tasks::Tasks;
use placement_cluster::replica::{REMOVED, Replica};
use placement_cluster::slot::Slot;
use placement_cluster::standards::LACKING;
use placement_cluster::{Running, Settings};
use placement_raft_store::disk_space;

/// Maximum total time that a check waits for a leader to be known and then for its answer. Load
/// balancers give a check two seconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// Maximum age of a cached check. Health checks need no token, and each new check costs a request
/// to the leader.
const FRESH: Duration = Duration::from_millis(200);
/// How long metrics, health checks and operators' requests wait for a value that is not available
/// immediately.
pub(crate) const SOON: Duration = Duration::from_millis(250);

/// Path of the liveness check.
pub(crate) const LIVEZ: &str = "/livez";
/// Path of the readiness check.
pub(crate) const READYZ: &str = "/readyz";

/// State that the health checks use.
#[derive(Clone)]
pub(crate) struct HealthChecks {
    pub(crate) slot: Arc<Slot>,
    pub(crate) config: Arc<Settings>,
    /// Whether this node continues to answer reads while it cannot reach the leader.
    pub(crate) answers_cut_off: bool,
    pub(crate) tasks: Tasks,
    /// The cached result of the last check with the cluster.
    pub(crate) in_cluster: Recent<Result<PromiseStatus, String>>,
    /// Contact with the leader at the last check.
    pub(crate) leadership: Arc<Mutex<Leadership>>,
    /// The line about the free space on the disk.
    pub(crate) room: Recent<String>,
}

/// Requests that a ready node can currently serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PromiseStatus {
    /// The leader has just confirmed a read.
    Confirmed,
    /// The leader was lost for this reason, less than `[cluster] wait_ms` ago: requests wait for
    /// the next leader.
    Waiting(String),
    /// The leader is unreachable for this reason, and reads are answered without it, according to
    /// `[reads] default`.
    CutOff(String),
}

/// Contact of the checks with the leader.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) enum Leadership {
    /// No leader has confirmed a read since this node started.
    #[default]
    Unproven,
    /// The last check reached the leader.
    Proven,
    /// An earlier check reached the leader, but no check since this moment has.
    LostAt(Instant),
}

impl Leadership {
    /// Notes the result of a check that began at `began`. Returns whether this node still lets
    /// requests wait for a leader.
    fn note(&mut self, is_confirmed: bool, began: Instant, wait: Duration) -> bool {
        *self = match *self {
            _ if is_confirmed => Self::Proven,
            Self::Proven => Self::LostAt(began),
            unchanged => unchanged,
        };
        match *self {
            Self::Unproven => false,
            Self::Proven => true,
            Self::LostAt(moment) => moment.elapsed() < wait,
        }
    }
}

impl HealthChecks {
    /// The routes of both checks.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route(LIVEZ, get(|| async { "ok\n" }))
            .route(READYZ, get(readyz))
            .with_state(self)
    }

    /// Why this node cannot promise to carry out requests now, if it cannot. This includes a ready
    /// node that waits for a leader.
    pub(crate) async fn problem(&self) -> Option<String> {
        match self.readiness(Duration::MAX).await {
            Ok(PromiseStatus::Confirmed | PromiseStatus::CutOff(_)) => None,
            Ok(PromiseStatus::Waiting(reason)) | Err(reason) => Some(reason),
        }
    }

    /// Whether a leader has just confirmed a read, also if this node is drained.
    pub(crate) async fn is_confirmed(&self) -> bool {
        let ability = self.ability(Duration::MAX).await;
        matches!(ability, Ok(PromiseStatus::Confirmed))
    }

    /// Whether this node is ready, as far as known within [`SOON`].
    pub(crate) async fn is_ready(&self) -> bool {
        self.readiness(SOON).await.is_ok()
    }

    /// The requests that this node can serve, or the reason why it is not ready.
    async fn readiness(&self, patience: Duration) -> Result<PromiseStatus, String> {
        if let Some(reason) = self.slot.leaving.why() {
            return Err(reason.to_owned());
        }
        let ready = self.ability(patience).await;
        if ready.is_ok() {
            self.slot.leaving.note_ready();
        }
        ready
    }

    /// Like [`Self::readiness`], also while the node is drained or stops.
    async fn ability(&self, patience: Duration) -> Result<PromiseStatus, String> {
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

    async fn standing(self, running: Arc<Running>) -> Result<PromiseStatus, String> {
        let began = Instant::now();
        let may_be_alone = self.answers_cut_off;
        let mut unconfirmed =
            without_leader(&running.replica, may_be_alone, began + PATIENCE).await;
        if let Some(lacking) = self.lacking(&running) {
            return Err(unconfirmed.filter(|_| !may_be_alone).unwrap_or(lacking));
        }
        if unconfirmed.is_none() {
            let unavailable = running.linearize(began + PATIENCE).await.err();
            unconfirmed = unavailable.map(|words| format!("reads cannot be confirmed: {words}"));
        }
        let wait = self.config.wait();
        let is_waiting = (self.leadership.lock()).note(unconfirmed.is_none(), began, wait);
        match unconfirmed {
            None => Ok(PromiseStatus::Confirmed),
            Some(reason) if may_be_alone => Ok(PromiseStatus::CutOff(reason)),
            Some(reason) if is_waiting => Ok(PromiseStatus::Waiting(reason)),
            Some(reason) => Err(reason),
        }
    }

    /// A reason why this node's state is incomplete, as far as this node knows.
    fn lacking(&self, running: &Running) -> Option<String> {
        if !running.has_standards() {
            return Some(LACKING.to_owned());
        }
        let lag = running.replica.apply_lag();
        (lag > self.config.cluster.ready_lag_max)
            .then(|| format!("{lag} committed log entries are not applied yet"))
    }

    /// A line about the disk. A node whose disk is nearly full is ready: it serves reads and
    /// deletions.
    async fn free_room(self) -> String {
        let min = self.config.disk.min_free_bytes;
        if min == 0 {
            return String::new();
        }
        let Some(free) = disk_space::free(&self.config.data_dir).await else {
            return String::new();
        };
        let full = disk_space::nearly_full(free, min);
        full.unwrap_or_else(|| format!("{free} bytes are free on the disk")) + "\n"
    }
}

/// Why no leader confirms this node's state, as far as known. Waits for a leader until `deadline`.
/// A node that may answer reads without a leader does not wait once it is cut off from the leader.
async fn without_leader(
    replica: &Replica,
    may_be_alone: bool,
    deadline: Instant,
) -> Option<String> {
    if may_be_alone && replica.freshness.is_cut_off() {
        return Some("the leader is unreachable".to_owned());
    }
    // During a hand-over no node knows a leader.
    replica.other_leader(None, deadline).await;
    let leader = replica.leader();
    leader.is_none().then(|| "no leader is known".to_owned())
}

impl Readiness for HealthChecks {
    fn why_not(&self) -> BoxFuture<'_, Option<String>> {
        let readiness = self.readiness(Duration::MAX);
        readiness.map(Result::err).boxed()
    }
}

async fn readyz(State(checks): State<HealthChecks>) -> Response {
    let standing = match checks.readiness(Duration::MAX).await {
        Ok(PromiseStatus::Confirmed) => String::new(),
        Ok(PromiseStatus::Waiting(reason)) => format!("requests wait for a leader: {reason}\n"),
        Ok(PromiseStatus::CutOff(reason)) => {
            format!(
                "cut off from the leader ({reason}): reads with the default consistency are \
                answered from this node's state, which may be out of date; writes are refused\n"
            )
        }
        Err(reason) => {
            return (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response();
        }
    };
    let room = checks
        .room
        .get(|age, _| age < FRESH, SOON, checks.clone().free_room());
    // The line is omitted while the disk hangs.
    let room = room.await.unwrap_or_default();
    format!("ready\n{standing}{room}").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(5);

    async fn after(seconds: u64) -> Instant {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        Instant::now()
    }

    #[tokio::test(start_paused = true)]
    async fn node_waits_for_a_leader_only_if_it_had_one_and_as_long_as_its_requests() {
        let mut leadership = Leadership::default();
        let mut check = |is_confirmed, at| leadership.note(is_confirmed, at, WAIT);
        assert!(!check(false, after(0).await), "it has never had a leader");
        assert!(!check(false, after(60).await));
        assert!(check(true, after(1).await));
        for seconds in [60, 2, 2] {
            assert!(check(false, after(seconds).await));
        }
        assert!(!check(false, after(1).await), "requests are answered 503");
        assert!(!check(false, after(60).await));
        assert!(check(true, after(1).await));
        assert!(check(false, after(1).await), "another leader was lost");
    }
}
