//! This node's part in its cluster, once it belongs to one: Raft, the store, the other members.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use openraft::async_runtime::watch::WatchReceiver;
use openraft::metrics::RaftServerMetrics;
use openraft::{ServerState, SnapshotPolicy};
use placement_model::types::Timestamp;
use placement_raft_store::{
    Health, Identity, Member, Raft, SnapshotDir, StoreMetrics, TypeConfig, Views, runtime,
};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::freshness::Freshness;
use super::propose::{Proposal, Proposer};
use super::read::{Round, Rounds};
use super::standards::Standards;
use super::tickets::Tickets;
use crate::config::Config;
use crate::doors::{PlacementIndex, Standing, View};
use crate::env::Env;
use crate::metrics::ReadMetrics;
use crate::node::StartError;
use crate::rpc::peers::Peers;
use crate::rpc::raft::{Limits, Networks};
use crate::tasks::Tasks;
use crate::world::Clock;

/// Raft, the store and what stands between them and the doors.
pub(crate) struct Group {
    pub(crate) me: u64,
    pub(crate) identity: Identity,
    pub(crate) raft: Raft,
    pub(crate) peers: Arc<Peers>,
    pub(crate) views: Views,
    pub(crate) health: Health,
    pub(crate) snapshots: SnapshotDir,
    pub(crate) store_metrics: StoreMetrics,
    pub(crate) tickets: Arc<Tickets>,
    pub(crate) freshness: Freshness,
    pub(crate) standards: Standards,
    /// How often another node, or none, came to lead since this node started.
    pub(crate) leader_changes: AtomicU64,
    /// The others have said that this node was removed.
    pub(super) removed: AtomicBool,
    pub(crate) proposals: mpsc::UnboundedSender<Proposal>,
    pub(crate) rounds: mpsc::UnboundedSender<Round>,
    pub(crate) read_metrics: Arc<ReadMetrics>,
    pub(crate) config: Arc<Config>,
}

/// The leader as this node knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) id: u64,
    pub(crate) address: String,
}

/// Turns of leadership and membership.
pub(crate) struct Turns {
    receiver: openraft::alias::WatchReceiverOf<TypeConfig, RaftServerMetrics<TypeConfig>>,
}

impl Turns {
    /// Waits for the next change; for ever once Raft has stopped.
    pub(crate) async fn next(&mut self) {
        if self.receiver.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

impl Group {
    /// Opens the store and starts Raft on it.
    pub(crate) async fn start(
        env: &Env,
        config: &Arc<Config>,
        identity: Identity,
        peers: &Arc<Peers>,
        read_metrics: Arc<ReadMetrics>,
        tasks: &Tasks,
    ) -> Result<Arc<Self>, StartError> {
        let mut options = env.storage.clone();
        options.dir = config.data_dir.clone();
        options.node = Some(config.node_id);
        options.cluster = Some(identity.cluster);
        let store = runtime::blocking(move || placement_raft_store::open(options)).await?;
        peers.join(store.identity.cluster);

        let networks = Networks {
            me: config.node_id,
            peers: peers.clone(),
            limits: limits(config),
        };
        let raft_config = raft_config(config, &identity)?;
        let raft = Raft::new(
            config.node_id,
            Arc::new(raft_config),
            networks,
            store.log,
            store.machine,
        )
        .await
        .map_err(|error| StartError::Raft(error.to_string()))?;

        let (proposals, proposed) = mpsc::unbounded_channel();
        let (rounds, asked) = mpsc::unbounded_channel();
        let group = Arc::new(Self {
            me: config.node_id,
            identity: store.identity,
            raft,
            peers: peers.clone(),
            views: store.views,
            health: store.health,
            snapshots: store.snapshots,
            store_metrics: store.metrics,
            tickets: Arc::new(Tickets::new(config.node_id, store.boot)),
            freshness: Freshness::default(),
            standards: Standards::new(env.standards.clone()),
            leader_changes: AtomicU64::new(0),
            removed: AtomicBool::new(false),
            proposals,
            rounds,
            read_metrics,
            config: config.clone(),
        });
        let proposer = Proposer::new(
            group.raft.clone(),
            group.views.clone(),
            group.health.clone(),
            Stamper {
                clock: env.clock.clone(),
                last: Timestamp(0),
            },
            tasks.clone(),
        );
        tasks.spawn(proposer.run(proposed));
        tasks.spawn(Rounds::new(group.clone()).run(asked));
        tasks.spawn(super::leadership::watch(group.clone()));
        tasks.spawn(super::leadership::leave_on_failure(group.clone()));
        tasks.spawn(super::standards::bring(group.clone()));
        tasks.spawn(super::removal::watch(group.clone()));
        tracing::info!(
            node = group.me,
            cluster = %group.identity.cluster,
            boot = store.boot,
            applied = group.views.applied_index(),
            "replication runs"
        );
        Ok(group)
    }

    /// What Raft knows of leader and membership now.
    fn server_metrics<T>(&self, of: impl FnOnce(&RaftServerMetrics<TypeConfig>) -> T) -> T {
        let receiver = self.raft.server_metrics();
        let metrics = receiver.borrow_watched();
        of(&metrics)
    }

    /// Told of changes of leadership and membership from now on.
    pub(crate) fn turns(&self) -> Turns {
        let mut receiver = self.raft.server_metrics();
        let _ = receiver.borrow_and_update();
        Turns { receiver }
    }

    /// Why this node takes no part in the cluster any more, if so: its disk has failed, or Raft has
    /// stopped on it.
    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        self.health.failure().or_else(|| {
            let receiver = self.raft.metrics();
            let metrics = receiver.borrow_watched();
            let fatal = metrics.running_state.as_ref().err()?;
            Some(format!("replication has stopped: {fatal}").into())
        })
    }

    /// The leader, as far as this node knows; none once this node takes no part any more.
    pub(crate) fn leader(&self) -> Option<Leader> {
        if self.failure().is_some() {
            return None;
        }
        self.server_metrics(|metrics| {
            let id = metrics.current_leader?;
            let member = metrics.membership_config.membership().get_node(&id);
            // A leader that was removed leads on for a moment, nameless.
            let address = match member {
                Some(member) => member.peer.clone(),
                None if id == self.me => String::new(),
                None => return None,
            };
            Some(Leader { id, address })
        })
    }

    /// Whether this node leads, as far as it knows.
    pub(crate) fn leads(&self) -> bool {
        self.server_metrics(|metrics| metrics.state == ServerState::Leader)
    }

    /// The members, effective if not yet committed.
    pub(crate) fn members(&self) -> BTreeMap<u64, Member> {
        self.server_metrics(|metrics| {
            metrics
                .membership_config
                .membership()
                .nodes()
                .map(|(id, member)| (*id, member.clone()))
                .collect()
        })
    }

    /// Whether a node is a member, a learner included.
    pub(crate) fn is_member(&self, id: u64) -> bool {
        self.server_metrics(|metrics| {
            metrics
                .membership_config
                .membership()
                .get_node(&id)
                .is_some()
        })
    }

    /// An index of this cluster's history.
    pub(crate) fn place(&self, index: u64) -> PlacementIndex {
        PlacementIndex {
            epoch: self.identity.epoch,
            index,
        }
    }

    /// Where this node stands.
    pub(crate) fn standing(&self) -> Standing {
        Standing {
            index: Some(self.place(self.views.applied_index().unwrap_or(0))),
            node: self.me,
            known_leader: self.leader().map(|leader| leader.id),
            staleness: self.freshness.staleness(),
        }
    }

    /// The state of this node now.
    pub(crate) fn view(&self) -> View {
        // The staleness first: the state is at least as fresh as it says.
        let staleness = self.freshness.staleness();
        let applied = self.views.current();
        View {
            state: applied.state.clone(),
            standing: Standing {
                index: Some(self.place(applied.index().unwrap_or(0))),
                node: self.me,
                known_leader: self.leader().map(|leader| leader.id),
                staleness,
            },
        }
    }

    /// Waits for a leader other than `than` (or any, for `None`), a little while at most.
    pub(crate) async fn other_leader(&self, than: Option<u64>, until: Instant) {
        let mut turns = self.turns();
        let wait = async {
            loop {
                match self.leader() {
                    Some(leader) if Some(leader.id) != than => return,
                    _ => turns.next().await,
                }
            }
        };
        // A timeout is as good as a change: the caller looks again.
        let _ = tokio::time::timeout_at(until, wait).await;
    }
}

fn limits(config: &Config) -> Limits {
    Limits {
        append_bytes_max: config.raft.append_bytes_max,
        append_deadline: Duration::from_millis(config.raft.election_max_ms),
        snapshot_chunk_bytes: config.raft.snapshot_chunk_bytes,
        snapshot_chunk_deadline: Duration::from_millis(config.raft.snapshot_timeout_ms),
    }
}

fn raft_config(config: &Config, identity: &Identity) -> Result<openraft::Config, StartError> {
    let raft = &config.raft;
    openraft::Config {
        cluster_name: identity.cluster.to_string(),
        heartbeat_interval: raft.heartbeat_ms,
        election_timeout_min: raft.election_min_ms,
        election_timeout_max: raft.election_max_ms,
        install_snapshot_timeout: raft.snapshot_timeout_ms,
        snapshot_max_chunk_size: raft.snapshot_chunk_bytes as u64,
        max_payload_entries: raft.append_entries_max,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(raft.snapshot_after),
        max_in_snapshot_log_to_keep: raft.log_keep,
        // A follower that still finds its next entry in the log is sent entries.
        replication_lag_threshold: raft.snapshot_after + raft.log_keep,
        purge_batch_size: (raft.snapshot_after / 4).clamp(1, 256),
        backoff: "100ms 200ms ...1s".to_owned(),
        // A node that was away must not unseat a healthy leader by a higher term.
        enable_pre_vote: Some(true),
        // A restarted leader may have lost what it had applied: it asks for votes again.
        enable_leader_restore: Some(false),
        ..openraft::Config::default()
    }
    .validate()
    .map_err(|error| StartError::Raft(error.to_string()))
}

/// Stamps commands with a time that never goes back, not even from leader to leader.
pub(crate) struct Stamper {
    clock: Arc<dyn Clock>,
    last: Timestamp,
}

impl Stamper {
    /// The time for the next command of the log, in microseconds since 1970: later than each that
    /// was given before, and than `applied`, the last one that this node has applied.
    pub(crate) fn stamp(&mut self, applied: Option<Timestamp>) -> Timestamp {
        let since = self
            .clock
            .now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let now = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        let last = applied.map_or(self.last, |applied| applied.max(self.last));
        self.last = Timestamp(now.max(last.0.saturating_add(1)));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::SystemTime;

    use super::*;

    /// A clock that says what it is told, in seconds since 1970.
    struct Told(Mutex<u64>);

    impl Clock for Told {
        fn now(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH + Duration::from_secs(*self.0.lock().unwrap())
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }
    }

    #[test]
    fn stamps_rise_although_the_clock_goes_back_and_an_earlier_leader_was_ahead() {
        let clock = Arc::new(Told(Mutex::new(1_000)));
        let mut stamper = Stamper {
            clock: clock.clone(),
            last: Timestamp(0),
        };
        assert_eq!(stamper.stamp(None), Timestamp(1_000_000_000));
        *clock.0.lock().unwrap() = 900;
        assert_eq!(stamper.stamp(None), Timestamp(1_000_000_001));
        // Applied from the log: another leader's clock was ahead.
        let applied = Some(Timestamp(2_000_000_000));
        assert_eq!(stamper.stamp(applied), Timestamp(2_000_000_001));
        assert_eq!(stamper.stamp(applied), Timestamp(2_000_000_002));
        *clock.0.lock().unwrap() = 3_000;
        assert_eq!(stamper.stamp(applied), Timestamp(3_000_000_000));
    }

    #[test]
    fn a_restarted_node_stamps_later_than_its_state_though_its_clock_is_behind() {
        let mut stamper = Stamper {
            clock: Arc::new(Told(Mutex::new(1_000))),
            last: Timestamp(0),
        };
        let loaded = Some(Timestamp(5_000_000_000));
        assert_eq!(stamper.stamp(loaded), Timestamp(5_000_000_001));
        assert_eq!(stamper.stamp(loaded), Timestamp(5_000_000_002));
    }
}
