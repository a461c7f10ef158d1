//! The store under openraft itself: three nodes in one process, calling each other directly.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{identity, logged, observations, options, run};
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use openraft::{Config, SnapshotPolicy};
use placement_model::command::CreateProvider;
use placement_model::types::{PartitionId, ProviderUuid, Timestamp};
use placement_model::{Command, Stamped};
use placement_raft_store::{
    Applied, Drafts, Health, Member, OpenError, Raft, Snapshot, SnapshotData, SnapshotDir, Store,
    StoreMetrics, TypeConfig, Views, Vote, create, open,
};
use tempfile::TempDir;
use tokio::time::Instant;
use uuid::Uuid;

/// Opens a store that was closed a moment ago: a call of another node may hold it a little longer.
async fn reopened(dir: &Path) -> Store {
    let give_up = Instant::now() + Duration::from_secs(10);
    loop {
        match open(options(dir)) {
            Ok(store) => return store,
            Err(OpenError::Locked { .. }) if Instant::now() < give_up => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

type Peers = Arc<Mutex<BTreeMap<u64, (Raft, SnapshotDir)>>>;

#[derive(Clone)]
struct Network {
    peers: Peers,
    drafts: Drafts,
    target: u64,
}

impl Network {
    fn peer(&self) -> Result<(Raft, SnapshotDir), Unreachable<TypeConfig>> {
        let peers = self.peers.lock().unwrap();
        peers
            .get(&self.target)
            .cloned()
            .ok_or_else(|| Unreachable::from_string("it is down"))
    }
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Self;

    async fn new_client(&mut self, target: u64, _node: &Member) -> Self {
        Self {
            peers: Arc::clone(&self.peers),
            drafts: self.drafts.clone(),
            target,
        }
    }
}

impl RaftNetworkV2<TypeConfig> for Network {
    type SnapshotData = SnapshotData;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, RPCError<TypeConfig>> {
        let answer = self.peer()?.0.append_entries(rpc).await;
        answer.map_err(|error| RPCError::Unreachable(Unreachable::new(&error)))
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let answer = self.peer()?.0.vote(rpc).await;
        answer.map_err(|error| RPCError::Unreachable(Unreachable::new(&error)))
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        _cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let (raft, snapshots) = self.peer().map_err(StreamingError::Unreachable)?;
        let mut receiver = snapshots.receive().unwrap();
        let mut offset = 0;
        let file = self.drafts.write_down(&snapshot).await.unwrap();
        while offset < file.length() {
            let piece = file.read_at(offset, 4096).unwrap();
            receiver.write(&piece).unwrap();
            offset = receiver.length();
        }
        let received = snapshots
            .verify(&snapshot.meta, receiver.finish().unwrap())
            .unwrap();
        let snapshot = Snapshot {
            meta: snapshot.meta,
            snapshot: SnapshotData::File(received),
        };
        raft.install_full_snapshot(vote, snapshot)
            .await
            .map_err(|error| StreamingError::Unreachable(Unreachable::new(&error)))
    }
}

struct Node {
    raft: Raft,
    views: Views,
    metrics: StoreMetrics,
    health: Health,
    drafts: Drafts,
}

struct Cluster {
    dirs: BTreeMap<u64, TempDir>,
    peers: Peers,
    nodes: BTreeMap<u64, Node>,
}

impl Cluster {
    async fn of_three() -> Self {
        let dir = |id| {
            let dir = TempDir::new().unwrap();
            create(dir.path(), identity(id)).unwrap();
            (id, dir)
        };
        let dirs = BTreeMap::from([1, 2, 3].map(dir));
        let mut cluster = Self {
            dirs,
            peers: Peers::default(),
            nodes: BTreeMap::new(),
        };
        for id in 1..=3 {
            cluster.start(id).await;
        }
        let members = BTreeMap::from([1, 2, 3].map(|id| (id, Member::default())));
        cluster.nodes[&1].raft.initialize(members).await.unwrap();
        cluster.leader().await;
        cluster
    }

    async fn start(&mut self, id: u64) {
        let config = Config {
            heartbeat_interval: 100,
            election_timeout_min: 500,
            election_timeout_max: 900,
            install_snapshot_timeout: 5000,
            snapshot_policy: SnapshotPolicy::Never,
            max_in_snapshot_log_to_keep: 0,
            purge_batch_size: 1,
            enable_leader_restore: Some(false),
            ..Config::default()
        };
        let store = reopened(self.dirs[&id].path()).await;
        let network = Network {
            peers: Arc::clone(&self.peers),
            drafts: store.drafts.clone(),
            target: id,
        };
        let config = Arc::new(config.validate().unwrap());
        let raft = Raft::new(id, config, network, store.log, store.machine)
            .await
            .unwrap();
        self.peers
            .lock()
            .unwrap()
            .insert(id, (raft.clone(), store.snapshots));
        let (views, metrics, health) = (store.views, store.metrics, store.health);
        let drafts = store.drafts;
        self.nodes.insert(
            id,
            Node {
                raft,
                views,
                metrics,
                health,
                drafts,
            },
        );
    }

    async fn stop(&mut self, id: u64) {
        self.peers.lock().unwrap().remove(&id);
        if let Some(node) = self.nodes.remove(&id) {
            node.raft.shutdown().await.unwrap();
        }
    }

    async fn leader(&self) -> u64 {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let leader = self.nodes.iter().find(|(_, node)| node.raft.is_leader());
            if let Some((id, node)) = leader
                && node
                    .raft
                    .ensure_linearizable(openraft::ReadPolicy::ReadIndex)
                    .await
                    .is_ok()
            {
                return *id;
            }
            assert!(Instant::now() < deadline, "no leader within 30 s");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Has providers made, each by a client of its own; returns the last index.
    async fn write(&self, numbers: std::ops::Range<u64>) -> u64 {
        let raft = &self.nodes[&self.leader().await].raft;
        let writes = numbers.map(|number| {
            let raft = raft.clone();
            async move {
                let command = Command::CreateProvider(CreateProvider {
                    uuid: ProviderUuid(Uuid::from_u128(u128::from(number) + 1)),
                    name: format!("cn{number}").try_into().unwrap(),
                    parent: None,
                });
                let stamped = Stamped {
                    partition: PartitionId::DEFAULT,
                    routes: 0,
                    at: Timestamp(1),
                    request: None,
                    command,
                };
                let written = raft.client_write(logged(stamped)).await.unwrap();
                assert!(matches!(written.data, Applied::Outcome(_)));
                written.log_id.index
            }
        });
        futures::future::join_all(writes)
            .await
            .into_iter()
            .max()
            .unwrap()
    }

    /// Waits until every node has applied the entry, and compares their states.
    async fn converged(&self, index: u64) {
        let mut digests = BTreeSet::new();
        for (id, node) in &self.nodes {
            let applied = node.views.wait_applied(index);
            let applied = tokio::time::timeout(Duration::from_secs(30), applied).await;
            let applied = applied
                .unwrap_or_else(|_| panic!("node {id} lags"))
                .unwrap();
            assert_eq!(applied.index(), Some(index), "node {id}");
            digests.insert(applied.digest().0);
        }
        assert_eq!(digests.len(), 1, "equal index, equal state");
    }
}

#[test]
fn a_node_that_missed_the_purged_log_catches_up_by_snapshot_and_all_restart() {
    run(async {
        let mut cluster = Cluster::of_three().await;
        let index = cluster.write(0..50).await;
        cluster.converged(index).await;

        let leader = cluster.leader().await;
        let away = if leader == 3 { 2 } else { 3 };
        cluster.stop(away).await;
        let index = cluster.write(50..200).await;
        for node in cluster.nodes.values() {
            node.views.wait_applied(index).await.unwrap();
            node.drafts.cover().await.unwrap();
            node.raft.trigger().snapshot().await.unwrap();
            let wait = node.raft.wait(Some(Duration::from_secs(30)));
            wait.metrics(|m| m.snapshot.is_some_and(|id| id.index >= index), "built")
                .await
                .unwrap();
            node.raft.trigger().purge_log(index).await.unwrap();
            let wait = node.raft.wait(Some(Duration::from_secs(30)));
            wait.metrics(|m| m.purged.is_some_and(|id| id.index >= index), "purged")
                .await
                .unwrap();
        }
        cluster.start(away).await;
        let index = cluster.write(200..220).await;
        cluster.converged(index).await;
        let snapshot = cluster.nodes[&away].raft.get_snapshot().await.unwrap();
        assert!(
            snapshot.is_some(),
            "it came by snapshot, as the log is purged"
        );

        for id in 1..=3 {
            cluster.stop(id).await;
        }
        for id in 1..=3 {
            cluster.start(id).await;
        }
        let index = cluster.write(220..230).await;
        cluster.converged(index).await;
        let sizes = cluster.nodes[&1]
            .views
            .current()
            .cluster
            .default_partition()
            .sizes();
        assert_eq!(sizes.providers, 230);
        for node in cluster.nodes.values() {
            assert_eq!(node.health.failure(), None);
        }
    });
}

#[test]
fn many_writers_share_a_sync() {
    run(async {
        let cluster = Cluster::of_three().await;
        let leader = cluster.leader().await;
        let syncs = || observations(&cluster.nodes[&leader].metrics.read().sync);
        let before = syncs();
        let index = cluster.write(0..1000).await;
        let syncs = syncs() - before;
        assert!(syncs < 500, "{syncs} syncs for 1000 writes");
        cluster.converged(index).await;
    });
}
