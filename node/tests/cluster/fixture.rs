//! Nodes in one process, for tests.

use std::sync::Arc;
use std::time::Duration;

use placement_base::backend::{AppliedWrite, Consistency, Unavailable, View};
use placement_base::settings::Text;
use placement_machine::SimulatedDisk;
use placement_model::command::{Command, CreateProvider};
use placement_model::types::ProviderUuid;
use placement_model::{Outcome, Reply, State};
use placement_node::{Config, Env, Node, StartError};
use placement_wire::NodeRole;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::ports::Ports;

/// Longest wait for anything that must happen; a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// One machine: a directory and an address, with or without a running node.
pub(crate) struct Machine {
    pub(crate) config: Config,
    pub(crate) env: Env,
    dir: TempDir,
    node: Option<Node>,
    /// Reserved even while no node runs.
    _ports: Ports,
}

impl Machine {
    /// A machine with an empty disk.
    pub(crate) fn new(id: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config {
            node_id: id,
            data_dir: dir.path().join("data"),
            ..Config::default()
        };
        let ports = Ports::claim(1);
        let address = |nth| format!("127.0.0.1:{}", ports.first() + nth);
        config.api.listen = address(0);
        config.api.drain_notice_ms = 0;
        config.peer.listen = address(1);
        config.admin.listen = address(2);
        // A machine that is busy with other tests sometimes delays a node; that must not cause an
        // election.
        config.raft.heartbeat_ms = 100;
        config.raft.election_min_ms = 1_000;
        config.raft.election_max_ms = 2_000;
        config.cluster.wait_ms = 10_000;
        Self {
            config,
            env: Env::production(),
            dir,
            node: None,
            _ports: ports,
        }
    }

    /// Sets longer election timeouts, so that a busy machine causes no election.
    pub(crate) fn set_election(&mut self, min_ms: u64, max_ms: u64) {
        self.config.raft.election_min_ms = min_ms;
        self.config.raft.election_max_ms = max_ms;
    }

    pub(crate) async fn try_start(&mut self) -> Result<(), StartError> {
        assert!(self.node.is_none(), "runs already");
        self.node = Some(Node::start(self.env.clone(), self.config.clone()).await?);
        Ok(())
    }

    pub(crate) async fn start(&mut self) {
        self.try_start().await.unwrap();
    }

    /// Like `kill -9`, except for data in the system's buffers.
    pub(crate) async fn kill(&mut self) {
        self.node.take().expect("runs").kill().await;
    }

    pub(crate) async fn shutdown(&mut self) {
        self.node.take().expect("runs").shutdown().await;
    }

    pub(crate) fn is_running(&self) -> bool {
        self.node.is_some()
    }

    pub(crate) fn node(&self) -> &Node {
        self.node.as_ref().expect("runs")
    }

    pub(crate) fn id(&self) -> u64 {
        self.config.node_id
    }

    pub(crate) fn leads(&self) -> bool {
        self.node
            .as_ref()
            .is_some_and(|node| node.status().role == NodeRole::Leader)
    }

    pub(crate) fn wipe(&mut self) {
        assert!(!self.is_running());
        std::fs::remove_dir_all(self.dir.path().join("data")).unwrap();
    }

    pub(crate) async fn submit(&self, command: Command) -> Result<AppliedWrite, Unavailable> {
        self.node()
            .write_backend()
            .submit(command, format!("req-{}", self.id()))
            .await
    }

    /// Creates a provider through this node.
    pub(crate) async fn create(&self, number: u128) -> AppliedWrite {
        let written = self.submit(create(number)).await.unwrap();
        assert!(
            matches!(written.outcome, Outcome::Done(Reply::Provider(_))),
            "{:?}",
            written.outcome
        );
        written
    }

    pub(crate) async fn view(&self, consistency: Consistency) -> Result<View, Unavailable> {
        self.node().read_backend().view(consistency).await
    }

    /// Whether this node sees a provider, linearizably.
    pub(crate) async fn sees(&self, number: u128) -> bool {
        has(
            &self.view(Consistency::Linearizable).await.unwrap().state,
            number,
        )
    }

    /// One request to the admin listener; returns status and body.
    pub(crate) async fn admin(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        request(&self.node().addresses().admin, method, path, body).await
    }

    /// One request to the REST API's listener.
    pub(crate) async fn api(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        request(&self.node().addresses().api, method, path, body).await
    }
}

/// HTTP by hand, so that the test depends on no client.
async fn request(address: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer[9..12].parse().unwrap();
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, body.to_owned())
}

/// A disk with instant syncs, until it is set to hang.
pub(crate) fn disk_of(machine: &mut Machine) -> SimulatedDisk {
    let disk = SimulatedDisk::new(machine.id(), Duration::ZERO..=Duration::from_millis(1));
    machine.env.storage.disk = Arc::new(disk.clone());
    disk
}

pub(crate) fn uuid(number: u128) -> ProviderUuid {
    ProviderUuid(uuid::Uuid::from_u128(number))
}

pub(crate) fn create(number: u128) -> Command {
    Command::CreateProvider(CreateProvider {
        uuid: uuid(number),
        name: format!("cn{number}").try_into().unwrap(),
        parent: None,
    })
}

pub(crate) fn has(state: &State, number: u128) -> bool {
    state.place(&uuid(number)).is_some()
}

/// Machines configured to form a cluster together.
pub(crate) fn machines(count: u64) -> Vec<Machine> {
    let mut machines: Vec<Machine> = (1..=count).map(Machine::new).collect();
    let members: Vec<_> = machines
        .iter()
        .map(|machine| {
            let member = format!("{}={}", machine.id(), machine.config.peer.listen);
            Text(member.parse().unwrap())
        })
        .collect();
    for machine in &mut machines {
        machine.config.initial_members = members.clone();
    }
    machines
}

/// A formed cluster with a leader that all nodes know.
pub(crate) async fn cluster(count: u64) -> Vec<Machine> {
    cluster_of(machines(count)).await
}

/// A cluster of machines that are already configured.
pub(crate) async fn cluster_of(mut machines: Vec<Machine>) -> Vec<Machine> {
    for machine in &mut machines {
        machine.start().await;
    }
    settled(&machines).await;
    machines
}

/// Waits until the running machines agree on a leader among them; returns its position.
pub(crate) async fn settled(machines: &[Machine]) -> usize {
    eventually("a leader that all know", || {
        let leader = machines.iter().position(Machine::leads)?;
        let all = machines
            .iter()
            .filter(|machine| machine.is_running())
            .all(|machine| machine.node().status().leader == Some(machines[leader].id()));
        all.then_some(leader)
    })
    .await
}

/// Waits until the running machines have applied the same, and returns the index.
pub(crate) async fn converged(machines: &[Machine]) -> u64 {
    eventually("the same state everywhere", || {
        let states: Vec<_> = machines
            .iter()
            .filter(|machine| machine.is_running())
            .map(|machine| {
                let current = machine.node().views()?.current();
                Some((current.index()?, current.digest()))
            })
            .collect::<Option<_>>()?;
        let (first, rest) = states.split_first()?;
        rest.iter().all(|state| state == first).then_some(first.0)
    })
    .await
}

/// Waits until `look` returns a value.
pub(crate) async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < give_up, "timed out waiting for {what}");
        sleep(Duration::from_millis(20)).await;
    }
}
