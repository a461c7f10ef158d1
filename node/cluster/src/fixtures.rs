//! For tests: a member that is a cluster of its own and listens on no port.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::internal_actions::{ActionLog, InternalAction};
use super::replica::Replica;
use super::running::Running;
use super::settings::Settings;
use super::slot::Slot;
use super::start::{Addresses, Bootstrap};
use crate::env::Env;
use placement_base::tasks::Tasks;
use placement_peer::raft::peers::Peers;
use placement_peer::tls::Link;

const PATIENCE: Duration = Duration::from_secs(30);

/// The member, and the objects that it needs.
pub(super) struct SingleMember {
    pub(super) bootstrap: Arc<Bootstrap>,
    pub(super) running: Arc<Running>,
    _dir: TempDir,
}

struct NotKept;

impl ActionLog for NotKept {
    fn record(&self, _: InternalAction) {}
}

/// A node that belongs to no cluster yet, with an empty directory.
pub(super) fn without_cluster(node: u64, dir: &Path) -> Arc<Bootstrap> {
    let mut config = Settings {
        node_id: node,
        data_dir: dir.join("data"),
        ..Settings::default()
    };
    config.raft.heartbeat_ms = 50;
    config.raft.election_min_ms = 200;
    config.raft.election_max_ms = 400;
    let (config, env, tasks) = (
        Arc::new(config),
        Env::production(),
        Tasks::on_current_runtime(),
    );
    let link = Link::new(env.net.clone(), None);
    let patience = Duration::from_secs(1);
    let peers = Peers::new(link, node, String::new(), patience, patience, tasks.clone());
    let addresses = Addresses {
        api: "127.0.0.1:1".to_owned(),
        peer: "127.0.0.1:2".to_owned(),
        admin: String::new(),
    };
    Arc::new(Bootstrap {
        slot: Arc::new(Slot::new(node, config.wait())),
        env,
        config,
        addresses,
        peers: Arc::new(peers),
        read_metrics: Arc::default(),
        actions: Arc::new(NotKept),
        tasks,
        joining: Mutex::new(()),
    })
}

impl SingleMember {
    /// Starts node 1 and waits until it leads.
    pub(super) async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bootstrap = without_cluster(1, dir.path());
        bootstrap.form_on_demand(Default::default()).await.unwrap();
        let running = bootstrap.slot.get().unwrap();
        let alone = Self {
            bootstrap,
            running,
            _dir: dir,
        };
        let leads = alone.running.linearize(Instant::now() + PATIENCE).await;
        leads.expect("the only voter leads");
        alone
    }

    /// Waits until `is_so` holds.
    pub(super) async fn becomes(&self, what: &str, is_so: impl Fn(&Replica) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.running.replica) {
            assert!(begun.elapsed() < PATIENCE, "not yet {what}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    pub(super) async fn stop(self) {
        self.running.stop().await;
        self.bootstrap.tasks.stop().await;
    }
}
