//! Known limitations of openraft. Each test pins one, so that an upgrade that removes it is noticed
//! and the workaround can be removed. `docs/openraft-proposals.md` contains the proposals to
//! openraft.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::common::{
    apply, blank, build, identity, log_id, membership, new_dir, opened, options, provider, run,
    run_here,
};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt};
use openraft::Config;
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, ReadPolicy, SnapshotResponse, StreamAppendResult,
    VoteRequest, VoteResponse,
};
use parking_lot::Mutex;
use placement_base::runtime;
use placement_machine::{SimulatedDisk, simulate};
use placement_raft_store::{
    Entry, LogEvent, LogId, LogObserver, Member, Raft, Snapshot, SnapshotData, Store, StoreOptions,
    TypeConfig, Views, Vote, create, open,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

/// An append that is answered when the test requests it, or never.
struct Append {
    to: u64,
    entries: usize,
    answer: oneshot::Sender<()>,
}

/// A leader's connection to a voter that grants votes and accepts all entries. Heartbeats are lost.
/// Followers open no connections.
#[derive(Clone, Default)]
struct Network {
    to: u64,
    appends: Option<UnboundedSender<Append>>,
}

type RpcResult<T> = Result<T, RPCError<TypeConfig>>;

fn unreachable() -> Unreachable<TypeConfig> {
    Unreachable::from_string("there is no network")
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Self;

    async fn new_client(&mut self, to: u64, _node: &Member) -> Self {
        let appends = self.appends.clone();
        Self { to, appends }
    }

    async fn new_heartbeat_client(&mut self, to: u64, _node: &Member) -> Self {
        Self { to, appends: None }
    }
}

impl RaftNetworkV2<TypeConfig> for Network {
    type SnapshotData = SnapshotData;

    async fn append_entries(
        &mut self,
        _rpc: AppendEntriesRequest<TypeConfig>,
        _option: RPCOption,
    ) -> RpcResult<AppendEntriesResponse<TypeConfig>> {
        Err(RPCError::Unreachable(unreachable()))
    }

    /// Sends without waiting for answers, as the node does (`node/peer/src/raft/network.rs`).
    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        _option: RPCOption,
    ) -> BoxFuture<'s, RpcResult<BoxStream<'s, RpcResult<StreamAppendResult<TypeConfig>>>>>
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Send + Unpin + 'static,
    {
        let to = self.to;
        let Some(appends) = self.appends.clone() else {
            return Box::pin(async { Err(RPCError::Unreachable(unreachable())) });
        };
        let answers = input.map(move |request| {
            let (answer, answered) = oneshot::channel();
            let entries = request.entries.len();
            let append = Append {
                to,
                entries,
                answer,
            };
            appends.send(append).ok();
            let last = request.entries.last().map(|entry| entry.log_id);
            answered.map(move |answered| match answered {
                Ok(()) => Ok(Ok(last.or(request.prev_log_id))),
                Err(_) => Err(RPCError::Unreachable(unreachable())),
            })
        });
        Box::pin(async { Ok(answers.buffered(32).boxed()) })
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        _option: RPCOption,
    ) -> RpcResult<VoteResponse<TypeConfig>> {
        Ok(VoteResponse::new(rpc.vote, None, true))
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

/// A follower of node 1 with a slow disk.
async fn follower(dir: &std::path::Path) -> Raft {
    create(dir, identity(2)).unwrap();
    let store = open(StoreOptions {
        disk: Arc::new(SimulatedDisk::new(5, SYNC..=SYNC)),
        ..options(dir)
    });
    started(2, Network::default(), store.unwrap()).await
}

async fn started(node: u64, network: Network, store: Store) -> Raft {
    let config = Config {
        election_timeout_min: 20_000,
        election_timeout_max: 30_000,
        ..Config::default()
    };
    let config = Arc::new(config.validate().unwrap());
    (Raft::new(node, config, network, store.log, store.machine).await).unwrap()
}

fn append(prev: Option<LogId>, entries: Vec<Entry>) -> AppendEntriesRequest<TypeConfig> {
    AppendEntriesRequest {
        vote: Vote::new_committed(1, 1),
        prev_log_id: prev,
        leader_commit: None,
        entries,
    }
}

/// Because of this limitation, the node answers heartbeats itself
/// (`node/cluster/src/peer_service.rs`).
#[test]
fn heartbeat_answer_waits_for_the_sync_of_unrelated_entries() {
    let _simulation = simulate(1);
    let dir = tempfile::TempDir::new().unwrap();
    run_here(async {
        let raft = follower(dir.path()).await;
        let head = vec![membership(0, 0, &[1, 2, 3]), blank(1, 1)];
        raft.append_entries(append(None, head)).await.unwrap();
        // An idle node answers a heartbeat at once.
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
        assert!(began.elapsed() < SYNC / 2, "the Raft task answers at once");
        raft.append_entries(append(flushed, vec![])).await.unwrap();
        assert!(began.elapsed() >= SYNC, "{:?}", began.elapsed());
        entries.await.unwrap();
        raft.shutdown().await.unwrap();
    });
}

/// The applied index when entries were removed.
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

/// Because of this limitation, a start installs received snapshots
/// (`raft-store/src/machine/snapshot_dir.rs`).
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
        })
        .unwrap();
        let mut receiver = follower.snapshots.receive().unwrap();
        let bytes = snapshot.file.read_at(0, 1 << 20).unwrap();
        receiver.write(&bytes).unwrap();
        let file = receiver.finish().unwrap();
        let file = follower.snapshots.verify(&snapshot.meta, file).unwrap();
        removals.views.set(follower.views.clone()).ok().unwrap();
        let raft = started(2, Network::default(), follower).await;
        // Entry 2 may already be committed: a follower learns the commit index later.
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

/// Because of this limitation, the node confirms reads itself, by asking for votes
/// (`node/cluster/src/read/index.rs`).
#[test]
fn late_answer_confirms_a_later_read() {
    const PAUSE: Duration = Duration::from_millis(100);
    let _simulation = simulate(1);
    let dir = new_dir();
    run_here(async {
        let (sender, mut appends) = unbounded_channel();
        let network = Network {
            to: 1,
            appends: Some(sender),
        };
        let raft = started(1, network, opened(dir.path())).await;
        let members = [1, 2, 3].map(|id| (id, Member::default()));
        raft.initialize(BTreeMap::from(members)).await.unwrap();
        // Node 1 is elected, and all nodes have its first entry.
        while let Ok(append) = timeout(PAUSE, appends.recv()).await {
            append.unwrap().answer.send(()).unwrap();
        }

        let mut next = async || timeout(PAUSE, appends.recv()).await.unwrap().unwrap();
        let write = runtime::spawn({
            let raft = raft.clone();
            async move { raft.write_blank().await.unwrap() }
        });
        let mut sent = [next().await, next().await];
        sent.sort_by_key(|append| append.to);
        let [to_2, to_3] = sent;
        assert_eq!(
            [(to_2.to, to_2.entries), (to_3.to, to_3.entries)],
            [(2, 1), (3, 1)]
        );
        // Both nodes answer now, but with a delay.
        sleep(PAUSE).await;
        let read = runtime::spawn({
            let raft = raft.clone();
            async move { raft.get_read_log_id(ReadPolicy::ReadIndex).await.unwrap() }
        });
        sleep(PAUSE).await;
        to_2.answer.send(()).unwrap();
        write.await.unwrap();
        // After the read request, only appends with the commit index are sent. They stay
        // unanswered.
        let unanswered = [next().await, next().await];
        assert!(unanswered.iter().all(|append| append.entries == 0));
        sleep(PAUSE).await;
        assert!(!read.is_finished());
        to_3.answer.send(()).unwrap();
        timeout(PAUSE, read).await.unwrap().unwrap();
        drop(unanswered);
        raft.shutdown().await.unwrap();
    });
}
