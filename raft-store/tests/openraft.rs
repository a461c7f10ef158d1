//! What openraft does today that costs us something. Each test pins it, so that an upgrade which changes
//! it is noticed: then what works around it can go. What we propose instead is in
//! `docs/openraft-proposals.md`.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::common::{
    apply, blank, build, identity, log_id, membership, new_dir, opened, options, provider, run,
    run_here,
};
use openraft::Config;
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use parking_lot::Mutex;
use placement_machine::{SimulatedDisk, simulate};
use placement_raft_store::{
    Entry, LogEvent, LogId, LogObserver, Member, Raft, Snapshot, SnapshotData, Store, StoreOptions,
    TypeConfig, Views, Vote, create, open, runtime,
};
use tokio::time::Instant;

/// A follower calls no one.
struct NoNetwork;

fn unreachable() -> Unreachable<TypeConfig> {
    Unreachable::from_string("there is no network")
}

impl RaftNetworkFactory<TypeConfig> for NoNetwork {
    type Network = Self;

    async fn new_client(&mut self, _target: u64, _node: &Member) -> Self {
        Self
    }
}

impl RaftNetworkV2<TypeConfig> for NoNetwork {
    type SnapshotData = SnapshotData;

    async fn append_entries(
        &mut self,
        _rpc: AppendEntriesRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, RPCError<TypeConfig>> {
        Err(RPCError::Unreachable(unreachable()))
    }

    async fn vote(
        &mut self,
        _rpc: VoteRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        Err(RPCError::Unreachable(unreachable()))
    }

    async fn full_snapshot(
        &mut self,
        _vote: Vote,
        _snapshot: Snapshot,
        _cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        Err(StreamingError::Unreachable(unreachable()))
    }
}

const SYNC: Duration = Duration::from_millis(400);

/// A follower of node 1 whose disk takes its time.
async fn follower(dir: &std::path::Path) -> Raft {
    create(dir, identity(2)).unwrap();
    let store = open(StoreOptions {
        disk: Arc::new(SimulatedDisk::new(5, SYNC..=SYNC)),
        ..options(dir)
    });
    started(store.unwrap()).await
}

async fn started(store: Store) -> Raft {
    let config = Config {
        election_timeout_min: 20_000,
        election_timeout_max: 30_000,
        ..Config::default()
    };
    let config = Arc::new(config.validate().unwrap());
    (Raft::new(2, config, NoNetwork, store.log, store.machine).await).unwrap()
}

fn append(prev: Option<LogId>, entries: Vec<Entry>) -> AppendEntriesRequest<TypeConfig> {
    AppendEntriesRequest {
        vote: Vote::new_committed(1, 1),
        prev_log_id: prev,
        leader_commit: None,
        entries,
    }
}

/// The node answers heartbeats itself for that reason (`node/src/cluster/peer_service.rs`).
#[test]
fn a_heartbeat_is_answered_only_after_the_sync_of_entries_that_it_has_nothing_to_do_with() {
    let _simulation = simulate(1);
    let dir = tempfile::TempDir::new().unwrap();
    run_here(async {
        let raft = follower(dir.path()).await;
        let head = vec![membership(0, 0, &[1, 2, 3]), blank(1, 1)];
        raft.append_entries(append(None, head)).await.unwrap();
        // At rest a heartbeat is answered at once.
        let flushed = Some(log_id(1, 1));
        let began = Instant::now();
        raft.append_entries(append(flushed, vec![])).await.unwrap();
        assert!(began.elapsed() < SYNC / 2, "{:?}", began.elapsed());

        let began = Instant::now();
        let entries = runtime::spawn({
            let raft = raft.clone();
            async move {
                let entries = vec![provider(1, 2)];
                raft.append_entries(append(flushed, entries)).await.unwrap();
            }
        });
        tokio::time::sleep(SYNC / 8).await;
        let vote = raft.with_raft_state(|state| *state.vote_ref());
        assert_eq!(vote.await.unwrap(), Vote::new_committed(1, 1));
        assert!(began.elapsed() < SYNC / 2, "its task is not busy");
        raft.append_entries(append(flushed, vec![])).await.unwrap();
        assert!(began.elapsed() >= SYNC, "{:?}", began.elapsed());
        entries.await.unwrap();
        raft.shutdown().await.unwrap();
    });
}

/// How far the state had come when entries were removed.
#[derive(Default)]
struct Removals {
    views: OnceLock<Views>,
    seen: Mutex<Vec<(Option<LogId>, Option<u64>)>>,
}

impl LogObserver for Removals {
    fn note(&self, event: LogEvent<'_>) {
        if let (LogEvent::Truncated(last), Some(views)) = (event, self.views.get()) {
            self.seen.lock().push((last, views.current().index()));
        }
    }
}

/// A start installs what was received for that reason (`raft-store/src/machine/snapshot_dir.rs`).
#[test]
fn entries_that_conflict_with_a_snapshot_are_removed_before_it_is_installed() {
    let (dir, leader_dir) = (new_dir(), tempfile::TempDir::new().unwrap());
    run(async {
        create(leader_dir.path(), identity(2)).unwrap();
        let mut leader = opened(leader_dir.path());
        let log = vec![
            membership(0, 0, &[1, 2, 3]),
            blank(1, 1),
            blank(2, 2),
            blank(2, 3),
        ];
        apply(&mut leader.machine, log.clone()).await;
        let snapshot = build(&mut leader).await;

        let removals = Arc::new(Removals::default());
        let follower = open(StoreOptions {
            log_observer: Some(removals.clone()),
            ..options(dir.path())
        });
        let follower = follower.unwrap();
        let mut receiver = follower.snapshots.receive().unwrap();
        let bytes = snapshot.file.read_at(0, 1 << 20).unwrap();
        receiver.write(&bytes).unwrap();
        let file = receiver.finish().unwrap();
        let file = follower.snapshots.verify(&snapshot.meta, file).unwrap();
        removals.views.set(follower.views.clone()).ok().unwrap();
        let raft = started(follower).await;
        // Entry 2 may be committed by now: a follower hears of that later.
        let mut of_node_1 = log[..2].to_vec();
        of_node_1.extend([blank(1, 2), blank(1, 3), blank(1, 4)]);
        raft.append_entries(append(None, of_node_1)).await.unwrap();
        let snapshot = Snapshot {
            meta: snapshot.meta,
            snapshot: SnapshotData::File(file),
        };
        let vote = Vote::new_committed(2, 1);
        raft.install_full_snapshot(vote, snapshot).await.unwrap();
        let views = removals.views.get().unwrap();
        assert_eq!(views.current().index(), Some(3));
        assert_eq!(*removals.seen.lock(), [(None, None)]);
        raft.shutdown().await.unwrap();
    });
}
