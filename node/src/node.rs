//! One node, from its listeners to its disk. The binary, the tests and the simulations start this.

use std::iter::once;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use placement_model::types::PartitionName;
use placement_raft_store::{Views, Vote};
use placement_wire::NodeStatus;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::access;
use crate::admin::{
    Admin, Inner, NetworkDoor, OneAtATime, Recording, enter, node_status, recorded,
};
use crate::api_port::ApiPort;
use crate::audit::Audit;
use crate::cluster::backlog::Backlog;
use crate::cluster::bootstrap::Bootstrap;
use crate::cluster::partition_door::PartitionDoor;
use crate::cluster::peer_service::PeerService;
use crate::cluster::read_door::Reads;
use crate::cluster::sites;
use crate::cluster::slot::Slot;
use crate::cluster::succession::{self, step_aside};
use crate::cluster::write_door::Writes;
use crate::cluster::{Addresses, ReadMetrics, StartError, joining, settle_number};
use crate::config::Config;
use crate::descriptors;
use crate::doors::{ReadDoor, WriteDoor};
use crate::env::{Env, Listener};
use crate::health::{HealthChecks, Recent};
use crate::http::{Api, AuthStrategy, Policy};
use crate::keystone::Keystone;
use crate::metrics::{Metrics, Sources};
pub use crate::partitions::ReloadError;
use crate::partitions::{self, NamedPolicy, Partitions};
use crate::rpc::peers::Peers;
use crate::serve::{Drain, HttpServer, Pace, local};
use crate::tasks::Tasks;
use crate::tls::{Gate, Secured};
use crate::world::{self, Offload};

/// How long an operator's client may take to send the head of a request.
const ADMIN_HEADER: Duration = Duration::from_secs(10);
/// Connections of operators and monitors at once.
const ADMIN_CONNECTIONS: usize = 256;

/// How often the policy files are looked at.
const POLICY_LOOK: Duration = Duration::from_secs(1);

/// How often a stopped node looks whether its disk is closed.
const CLOSING: Duration = Duration::from_millis(10);
/// How long it looks.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// What a node is to its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// The vote that it has made durable, with its term.
    pub vote: Vote,
    /// Whether it believes that it leads.
    pub leads: bool,
}

/// A running node.
pub struct Node {
    config: Arc<Config>,
    addresses: Addresses,
    bootstrap: Arc<Bootstrap>,
    write: Arc<Writes>,
    read: Arc<dyn ReadDoor>,
    checks: HealthChecks,
    drain: Drain,
    policy: Arc<Policy>,
    /// Those of partitions that have one of their own.
    policies: Vec<NamedPolicy>,
    audit: Audit,
    tasks: Tasks,
    /// The same group, on the runtime that serves HTTP.
    requests: Tasks,
}

impl Node {
    /// Starts a node. Returns once it listens; a node that belongs to no cluster yet answers 503
    /// until its cluster is formed or it is added to one.
    ///
    /// # Errors
    /// [`StartError`], in words for an operator.
    pub async fn start(env: Env, config: Config) -> Result<Self, StartError> {
        let mut config = config;
        settle_number(&mut config)?;
        config.validate()?;
        let settings = config.api_settings()?;
        let keystone = match settings.auth.strategy {
            AuthStrategy::Keystone(_) => {
                let (net, clock) = (env.net.clone(), env.clock.clone());
                Some(Arc::new(Keystone::open(&config.keystone, net, clock)?))
            }
            AuthStrategy::Proxy { .. } => None,
            AuthStrategy::NoAuth2 => {
                tracing::warn!(
                    "whoever reaches the REST API is obeyed ([auth] strategy = \"noauth2\")"
                );
                None
            }
        };
        let secured = Secured::open(&config, env.net.clone())?;
        let policy = Policy::read(&settings.policy);
        let policy = Arc::new(policy.map_err(|error| StartError::Policy(error.to_string()))?);
        let audit = Audit::open(&config.audit, config.node_id, env.clock.clone())?;
        let config = Arc::new(config);
        let tasks = Tasks::here();
        let requests = tasks.on(env.requests.clone());

        let (api, api_address) =
            listen(&env, &requests, "the REST API", &config.api.listen).await?;
        let (peer, peer_address) = listen(&env, &tasks, "other nodes", &config.peer.listen).await?;
        let (admin, admin_address) = AdminDoors::open(&env, &requests, &config).await?;
        let addresses = Addresses {
            api: advertised(&config.api.advertise, api_address),
            peer: advertised(&config.peer.advertise, peer_address),
            admin: advertised(&config.admin.advertise, admin_address),
        };

        let slot = Arc::new(Slot::new(config.node_id, config.wait()));
        let read_metrics = Arc::new(ReadMetrics::default());
        let peers = Peers::new(
            secured.link,
            config.node_id,
            Duration::from_millis(config.peer.connect_ms),
            Duration::from_millis(config.peer.silence_ms),
            tasks.clone(),
        );
        let peers = peers.of_region(config.node.region.clone(), config.compress()?);
        let peers = Arc::new(peers);
        peers.agree_to(config.level_max());
        let recording = Recording {
            audit: audit.clone(),
            ids: env.ids.clone(),
        };
        let bootstrap = Arc::new(Bootstrap {
            env: env.clone(),
            config: config.clone(),
            addresses: addresses.clone(),
            slot: slot.clone(),
            peers,
            read_metrics: read_metrics.clone(),
            deeds: Arc::new(recording.clone()),
            tasks: tasks.clone(),
            joining: tokio::sync::Mutex::new(()),
        });
        if let Err(error) = bootstrap.resume().await {
            tasks.stop().await;
            return Err(error);
        }

        let write = Arc::new(Writes::new(
            slot.clone(),
            Backlog::new("this node", &config),
        ));
        let read = Arc::new(Reads::new(slot.clone()));
        let checks = HealthChecks {
            slot: slot.clone(),
            config: config.clone(),
            tasks: tasks.clone(),
            in_cluster: Recent::default(),
            room: Recent::default(),
        };
        let api_of_default = Api {
            write: write.clone(),
            read: read.clone(),
            clock: env.clock.clone(),
            ids: env.ids.clone(),
            offload: env.offload.clone(),
            readiness: Arc::new(checks.clone()),
            keystone: keystone.clone(),
            policy: policy.clone(),
            audit: audit.clone(),
            settings,
        };
        let partitions = Partitions::open(&config, api_of_default, read.clone(), write.clone())?;
        let mut listeners = Vec::new();
        for section in &config.partitions {
            if !section.listen.is_empty() {
                let opened = listen(&env, &requests, "a partition", &section.listen);
                let (listener, address) = opened.await?;
                tracing::info!(partition = section.name, api = address, "listening");
                listeners.push((section.name()?, listener));
            }
        }
        let node = Self {
            write,
            read,
            checks,
            drain: Drain::default(),
            policy: policy.clone(),
            policies: partitions.policies().to_vec(),
            audit: audit.clone(),
            config,
            addresses,
            bootstrap,
            tasks,
            requests,
        };
        let metrics = Metrics::new(Sources {
            slot: slot.clone(),
            reads: read_metrics,
            policies: once(policy)
                .chain(node.policies.iter().map(|(_, own)| own.clone()))
                .collect(),
            callers: partitions.callers(),
            audit: audit.numbers(),
            keystone,
            certificates: secured.certificates.clone(),
            site: node.config.site(),
        });
        let metrics = Arc::new(metrics);
        let orders = Admin {
            bootstrap: node.bootstrap.clone(),
            metrics: metrics.clone(),
            checks: node.checks.clone(),
            checking: Arc::default(),
            backups: OneAtATime::default(),
            write: node.write.clone(),
            read: node.read.clone(),
            policies: once((PartitionName::DEFAULT.to_owned(), node.policy.clone()))
                .chain(node.policies.iter().cloned())
                .collect(),
        };
        let inner = Inner::new(orders.clone(), recording.clone());
        node.serve_peers(peer, secured.peer, inner);
        let port = ApiPort::new(slot, partitions, &node.checks, metrics.clone());
        let places = descriptors::for_clients(1 + listeners.len(), node.config.api.max_connections);
        for (name, listener) in listeners {
            node.serve_api(
                &env,
                port.only(&name),
                listener,
                secured.api.clone(),
                &places,
                &metrics,
            );
        }
        node.serve_api(&env, port, api, secured.api, &places, &metrics);
        node.serve_admin(&env, admin, secured.admin, orders, &recording);
        for (_, certificates) in secured.certificates {
            node.tasks.spawn(certificates.watch(env.clock.clone()));
        }
        node.tasks.spawn(node.bootstrap.clone().form());
        node.tasks.spawn(joining::join(node.bootstrap.clone()));
        node.tasks.spawn(sites::tell(node.bootstrap.clone()));
        let preference = node.config.cluster.leader_preference.clone();
        if !preference.is_empty() {
            let follows = succession::follow(node.bootstrap.slot.clone(), preference);
            node.tasks.spawn(follows);
        }
        node.tasks.spawn(probe(
            node.bootstrap.slot.clone(),
            node.config.reads.probe_ms,
        ));
        let own = node.policies.iter().map(|(_, policy)| policy);
        for policy in once(&node.policy).chain(own) {
            let looks = look_at_policy(policy.clone(), env.offload.clone());
            node.tasks.spawn(looks);
        }
        tracing::info!(
            node = node.config.node_id,
            api = node.addresses.api,
            peer = node.addresses.peer,
            admin = node.addresses.admin,
            "listening"
        );
        Ok(node)
    }

    fn serve_peers(&self, listener: Box<dyn Listener>, gate: Gate, inner: Arc<Inner>) {
        let calls = Arc::new(PeerService::new(self.bootstrap.clone(), inner));
        self.tasks.spawn(calls.clean());
        let damage = self.bootstrap.peers.damage.clone();
        let serve = crate::rpc::server::serve(listener, gate, calls, damage, self.tasks.clone());
        self.tasks.spawn_vital("listening to other nodes", serve);
    }

    fn serve_api(
        &self,
        env: &Env,
        port: ApiPort,
        listener: Box<dyn Listener>,
        gate: Gate,
        places: &Arc<Semaphore>,
        metrics: &Metrics,
    ) {
        let settings = &self.config.api;
        let server = HttpServer {
            beyond: port.full(),
            answers: port,
            purpose: "the REST API",
            gate,
            connections_max: settings.max_connections,
            connections_per_address_max: match settings.max_connections_per_address {
                0 => usize::MAX,
                most => most,
            },
            connections_left: places.clone(),
            pace: self.pace(),
            header_timeout: Duration::from_millis(self.config.api.header_timeout_ms),
            date: env.http_date,
            open: metrics.http.connections().clone(),
            drain: self.drain.clone(),
        };
        let (tasks, drain) = (self.requests.clone(), self.drain.clone());
        self.requests
            .spawn_vital("serving the REST API", async move {
                server.serve(listener, tasks).await;
                drain.wait_if_begun().await;
            });
    }

    fn pace(&self) -> Pace {
        Pace {
            min_bytes_per_s: self.config.api.min_bytes_per_s,
        }
    }

    /// Serves operators, over each door that there is, and monitors.
    fn serve_admin(
        &self,
        env: &Env,
        doors: AdminDoors,
        gate: Gate,
        admin: Admin,
        recording: &Recording,
    ) {
        let health = (admin.clone().numbers()).merge(self.checks.clone().router());
        let orders = admin.router();
        if let Some(listener) = doors.socket {
            let router = orders.clone().merge(health.clone());
            self.serve_operators(env, listener, Gate::Plain, router, &health, recording);
        }
        if let Some(listener) = doors.network {
            let addresses = [&*self.config.admin.listen, &*self.addresses.admin];
            let door = NetworkDoor::new(matches!(gate, Gate::Tls { .. }), &addresses);
            let router = orders
                .layer(from_fn_with_state(door, enter))
                .merge(health.clone());
            self.serve_operators(env, listener, gate, router, &health, recording);
        }
        if let Some(listener) = doors.metrics {
            let router = health.clone();
            self.serve_operators(env, listener, Gate::Plain, router, &health, recording);
        }
    }

    fn serve_operators(
        &self,
        env: &Env,
        listener: Box<dyn Listener>,
        gate: Gate,
        router: Router,
        health: &Router,
        recording: &Recording,
    ) {
        let server = HttpServer {
            answers: router
                .layer(from_fn_with_state(recording.clone(), recorded))
                .layer(from_fn(access::logged)),
            beyond: (health.clone())
                .fallback(|| async { StatusCode::SERVICE_UNAVAILABLE })
                .layer(from_fn(access::logged)),
            purpose: "operators",
            gate,
            connections_max: ADMIN_CONNECTIONS,
            connections_per_address_max: usize::MAX,
            connections_left: Arc::new(Semaphore::new(ADMIN_CONNECTIONS)),
            pace: self.pace(),
            header_timeout: ADMIN_HEADER,
            date: env.http_date,
            open: Gauge::default(),
            // Operators and monitors see a node stop until it has stopped.
            drain: Drain::default(),
        };
        let tasks = self.requests.clone();
        let serve = server.serve(listener, tasks);
        self.requests.spawn_vital("serving operators", serve);
    }

    /// Takes over what of a configuration can change while a node runs: `[policy]`. `[log] level`
    /// is the process's. Says in the log what else differs and waits for a restart.
    ///
    /// # Errors
    /// A policy file that cannot be understood; the rules from before stay in force.
    pub fn reload(&self, config: &Config) -> Result<(), ReloadError> {
        let differs = self.config.differs_in(config);
        let waiting: Vec<_> = (differs.into_iter())
            .filter(|path| !path.starts_with("policy.") && path != "log.level")
            .collect();
        if !waiting.is_empty() {
            tracing::warn!(
                settings = waiting.join(", "),
                "these settings were changed and count only after a restart"
            );
        }
        let settings = config.api_settings()?;
        self.policy.reload(&settings.policy)?;
        Ok(partitions::reload(config, &self.policies)?)
    }

    /// Goes on in the audit file that has the name now: the one from before may have been renamed.
    pub fn reopen_audit(&self) {
        self.audit.reopen();
    }

    /// Where others reach this node, with real port numbers.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The door for writes of the default partition, and for commands of the whole cluster.
    pub fn write_door(&self) -> Arc<dyn WriteDoor> {
        self.write_door_of(PartitionName::default())
    }

    /// The door for writes of a partition that is not the default one.
    pub fn write_door_of(&self, partition: PartitionName) -> Arc<dyn WriteDoor> {
        let (read, write) = (self.read.clone(), self.write.clone());
        Arc::new(PartitionDoor::new(partition, None, read, write))
    }

    /// The door for reads.
    pub fn read_door(&self) -> Arc<dyn ReadDoor> {
        self.read.clone()
    }

    /// Whether this node can work at all, whatever its cluster does: the threads that serve requests take one
    /// more task, and none has ended that it cannot be without.
    pub(crate) async fn is_alive(&self) -> bool {
        self.requests.run(async {}).await;
        self.tasks.ended().is_none()
    }

    /// Why this node is not ready, if it is not.
    pub(crate) async fn not_ready(&self) -> Option<String> {
        self.checks.not_ready().await.err()
    }

    /// What this node knows of itself at once; `GET /v1/status` adds what takes a moment to find out.
    pub fn status(&self) -> NodeStatus {
        node_status(&self.bootstrap)
    }

    /// What this node says of itself now, without asking anybody; `None` before it belongs to a
    /// cluster. Simulations look at it between two steps.
    pub fn role(&self) -> Option<Role> {
        let running = self.bootstrap.slot.get()?;
        let (vote, leads) = running.replica.vote();
        Some(Role { vote, leads })
    }

    /// What this node has applied; `None` before it belongs to a cluster. Holds no disk open.
    pub fn views(&self) -> Option<Views> {
        Some(self.bootstrap.slot.get()?.replica.views.clone())
    }

    /// Says that it is not ready any more and gives balancers time to notice, hands leadership over,
    /// answers what is being asked, then stops and closes the disk.
    pub async fn shutdown(self) {
        let leaving = &self.bootstrap.slot.leaving;
        leaving.stopping.store(true, Ordering::Relaxed);
        let api = &self.config.api;
        if api.drain_notice_ms > 0 && !leaving.drained.load(Ordering::Relaxed) {
            tracing::info!(
                ms = api.drain_notice_ms,
                "not ready any more; requests are answered until balancers have noticed"
            );
            sleep(Duration::from_millis(api.drain_notice_ms)).await;
        }
        if let Some(running) = self.bootstrap.slot.get() {
            let patience = Duration::from_millis(2 * self.config.raft.election_max_ms);
            if let Err(reason) = step_aside(&running, patience).await {
                tracing::warn!(reason, "leadership could not be handed over");
            }
        }
        self.drain.finish(Duration::from_millis(api.drain_ms)).await;
        self.audit.finish().await;
        self.kill().await;
        tracing::info!("stopped");
    }

    /// Stops at once, without another answer, and closes the disk.
    pub async fn kill(self) {
        let running = self.bootstrap.slot.take();
        self.tasks.stop().await;
        let Some(running) = running else {
            return;
        };
        running.stop().await;
        drop(running);
        // The tasks of Raft and the disk's own thread end by themselves, and with them the last
        // handle of the disk. Who starts the node again at once must find it closed.
        let dir = self.config.data_dir.clone();
        let closed = async {
            while placement_raft_store::in_use(&dir) {
                sleep(CLOSING).await;
            }
        };
        if tokio::time::timeout(CLOSING_MAX, closed).await.is_err() {
            tracing::warn!(dir = %dir.display(), "the data directory is still open");
        }
    }
}

impl Drop for Node {
    /// A node that is dropped without a word stops as if it had crashed.
    fn drop(&mut self) {
        self.tasks.abandon();
    }
}

/// Where operators and monitors come in.
struct AdminDoors {
    socket: Option<Box<dyn Listener>>,
    network: Option<Box<dyn Listener>>,
    metrics: Option<Box<dyn Listener>>,
}

impl AdminDoors {
    /// With the address that is listened on for operators; empty: none.
    async fn open(env: &Env, tasks: &Tasks, config: &Config) -> Result<(Self, String), StartError> {
        let mut doors = Self {
            socket: None,
            network: None,
            metrics: None,
        };
        if let Some(path) = config.admin_socket() {
            let (wanted, data_dir) = (path.clone(), config.data_dir.clone());
            let bound = tasks.run(async move {
                placement_raft_store::make_durably(&data_dir)?;
                local::bind(&wanted).await
            });
            doors.socket = Some(bound.await.map_err(|error| StartError::Listen {
                purpose: "operators",
                address: path.display().to_string(),
                error,
            })?);
        }
        let mut address = String::new();
        if !config.admin.listen.is_empty() {
            let (network, bound) = listen(env, tasks, "operators", &config.admin.listen).await?;
            (doors.network, address) = (Some(network), bound);
        }
        if !config.metrics.listen.is_empty() {
            let (metrics, _) = listen(env, tasks, "monitors", &config.metrics.listen).await?;
            doors.metrics = Some(metrics);
        }
        Ok((doors, address))
    }
}

async fn listen(
    env: &Env,
    tasks: &Tasks,
    purpose: &'static str,
    address: &str,
) -> Result<(Box<dyn Listener>, String), StartError> {
    let failed = |error| StartError::Listen {
        purpose,
        address: address.to_owned(),
        error,
    };
    let (net, wanted) = (env.net.clone(), address.to_owned());
    let bound = tasks.run(async move { net.bind(&wanted).await });
    let listener = bound.await.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    Ok((listener, format!("{host}:{port}")))
}

fn advertised(configured: &str, bound: String) -> String {
    match configured.is_empty() {
        true => bound,
        false => configured.to_owned(),
    }
}

/// Looks at the policy files once in a while, on a thread that may wait for their disk.
async fn look_at_policy(policy: Arc<Policy>, offload: Arc<dyn Offload>) {
    loop {
        sleep(POLICY_LOOK).await;
        // SIGHUP may name some later.
        if policy.has_files() {
            let policy = policy.clone();
            world::compute(&*offload, move || policy.look()).await;
        }
    }
}

/// Asks the leader once in a while how far this node should be, so that its staleness is known
/// without reads, too.
async fn probe(slot: Arc<Slot>, every_ms: u64) {
    if every_ms == 0 {
        return;
    }
    let every = Duration::from_millis(every_ms);
    loop {
        sleep(every).await;
        let Some(running) = slot.get() else {
            continue;
        };
        let replica = &running.replica;
        if replica.failure().is_some() {
            return;
        }
        if replica.freshness.staleness().is_none_or(|age| age >= every) {
            // Without an answer the staleness grows, and that is what is known.
            let _ = running.read_index.linearize(Instant::now() + every).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::{Builder, Runtime};
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn a_node_is_alive_while_it_takes_requests_and_no_task_has_ended() {
        let (dir, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
        let requests = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let requests = requests.unwrap();
        let mut config = Config {
            node_id: 1,
            data_dir: dir.path().join("data"),
            ..Config::default()
        };
        for listen in [
            &mut config.api.listen,
            &mut config.peer.listen,
            &mut config.admin.listen,
        ] {
            *listen = "127.0.0.1:0".to_owned();
        }
        runtime.block_on(async {
            let mut env = Env::production();
            env.requests = Some(requests.handle().clone());
            let node = Node::start(env, config).await.unwrap();
            assert!(node.is_alive().await);

            let (release, held) = std::sync::mpsc::channel::<()>();
            requests.spawn(async move { held.recv().is_ok() });
            let asked = timeout(Duration::from_millis(200), node.is_alive()).await;
            assert!(asked.is_err(), "the only thread for requests is held");
            drop(release);
            assert!(node.is_alive().await);

            node.tasks.spawn_vital("proposing", async {});
            node.tasks.until_one_ended().await;
            assert!(!node.is_alive().await);
            node.kill().await;
        });
        requests.shutdown_background();
    }
}
