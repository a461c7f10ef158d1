//! One node, from its listeners to its disk. The binary, the tests and the simulations start it.

mod listeners;
mod servers;
mod start;

use std::sync::Arc;
use std::time::Duration;

use placement_model::types::PartitionName;
use placement_raft_store::{Views, Vote};
use placement_wire::NodeStatus;
use tokio::time::{Instant, sleep};

use self::listeners::Listeners;
use self::servers::Servers;
use self::start::{Apis, Core, OpenedResources, Runtimes};
use crate::admin::node_status;
use crate::api_port::ApiPort;
use crate::config::Config;
use crate::health::HealthChecks;
use crate::partitions::{self, NamedPolicy};
use crate::serve::Drain;
use placement_audit::Audit;
use placement_base::backend::{ReadBackend, WriteBackend};
use placement_base::log_messages::log;
use placement_base::tasks::Tasks;
use placement_base::world::{self, Offload};
use placement_cluster::backend::partition::{PartitionBackend, Writes};
use placement_cluster::env::Env;
use placement_cluster::leadership::preference::{self, step_aside};
use placement_cluster::slot::Slot;
use placement_cluster::start::Bootstrap;
use placement_cluster::start::{joining, self_description};
use placement_cluster::{Addresses, StartError, settle_number};
use placement_peer::tls::Certificates;
use placement_policy::{Policy, PolicyError};

/// How often the policy files are checked for changes.
const POLICY_LOOK: Duration = Duration::from_secs(1);

/// How long a stopping node waits for requests that are being answered.
const DRAIN: Duration = Duration::from_secs(5);
/// How often a stopped node checks whether its disk is closed.
const CLOSING: Duration = Duration::from_millis(10);
/// Maximum time that a stopped node waits for its disk to be closed.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// The role of a node in Raft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// The vote that it has made durable, with its term.
    pub vote: Vote,
    /// Whether it believes that it leads.
    pub leads: bool,
}

/// A running node; dropping it stops it as if it had crashed.
pub struct Node {
    config: Arc<Config>,
    bootstrap: Arc<Bootstrap>,
    write: Arc<Writes>,
    read: Arc<dyn ReadBackend>,
    checks: HealthChecks,
    drain: Drain,
    /// The policy of the default partition, then those of partitions with a policy of their own.
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
    /// [`StartError`], with a message for an operator.
    pub async fn start(env: Env, mut config: Config) -> Result<Self, StartError> {
        config.node_id = settle_number(config.node_id, &config.data_dir, &config.cluster)?;
        config.validate()?;
        let opened = OpenedResources::open(&env, &config)?;
        let config = Arc::new(config);
        let runtimes = Runtimes::new(&env);
        let Runtimes { tasks, requests } = &runtimes;
        let listeners = Listeners::bind(&env, &config, tasks, requests).await?;
        let addresses = listeners.addresses.clone();
        let core = Core::new(env, &config, &opened, addresses, &runtimes);
        let apis = Apis::open(&core, &config, &opened, requests)?;
        let (node, servers) = Self::assemble(config, &opened, core, apis, runtimes);
        if let Err(error) = node.bootstrap.resume().await {
            node.tasks.stop().await;
            return Err(error);
        }
        let open = listeners.described(&opened.secured.gates);
        servers.start(listeners, opened.secured.gates);
        node.spawn_tasks(opened.secured.certificates);
        open.log(node.bootstrap.config.node_id);
        Ok(node)
    }

    /// Last stage before anything runs: the node, and the servers of its listeners.
    fn assemble(
        config: Arc<Config>,
        opened: &OpenedResources,
        core: Core,
        apis: Apis,
        runtimes: Runtimes,
    ) -> (Self, Servers) {
        let drain = Drain::default();
        let slot = core.bootstrap.slot.clone();
        let servers = Servers {
            config: config.clone(),
            requests: runtimes.requests.clone(),
            drain: drain.clone(),
            keystone: opened.keystone.clone(),
            port: ApiPort::new(slot, apis.partitions.clone(), apis.metrics.clone()),
            admin: apis.admin(&core, &config),
            recording: core.recording,
        };
        let node = Self {
            write: core.write,
            read: core.read,
            checks: core.checks,
            drain,
            policies: apis.policies,
            audit: opened.audit.clone(),
            tasks: runtimes.tasks,
            requests: runtimes.requests,
            bootstrap: core.bootstrap,
            config,
        };
        (node, servers)
    }

    /// Starts the tasks that run whether this node is a member or not.
    fn spawn_tasks(&self, certificates: Vec<(&'static str, Arc<Certificates>)>) {
        let Bootstrap {
            env, config, slot, ..
        } = &*self.bootstrap;
        for (_, certificates) in certificates {
            self.tasks.spawn(certificates.watch(env.clock.clone()));
        }
        self.tasks.spawn(self.bootstrap.clone().form());
        self.tasks.spawn(joining::join(self.bootstrap.clone()));
        self.tasks
            .spawn(self_description::report(self.bootstrap.clone()));
        let preference = &config.cluster.leader_preference;
        if !preference.is_empty() {
            let follows = preference::follow(slot.clone(), preference.clone());
            self.tasks.spawn(follows);
        }
        self.tasks
            .spawn(preference::lead_only_undrained(slot.clone()));
        self.tasks
            .spawn(probe(slot.clone(), self.config.reads.probe_ms));
        for (_, policy) in &self.policies {
            let looks = look_at_policy(policy.clone(), env.offload.clone());
            self.tasks.spawn(looks);
        }
    }

    /// Applies the settings that can change while a node runs: `[policy]`. `[log] level` belongs to
    /// the process. Logs the other changed settings, which need a restart.
    ///
    /// # Errors
    /// An invalid policy file; the previous rules stay in force.
    pub fn reload(&self, config: &Config) -> Result<(), PolicyError> {
        let differs = self.config.differs_in(config);
        let waiting: Vec<_> = (differs.into_iter())
            .filter(|path| !path.starts_with("policy.") && path != "log.level")
            .collect();
        if !waiting.is_empty() {
            log!(
                SETTINGS_NEED_RESTART,
                settings = waiting.join(", "),
                "these settings were changed and take effect after a restart"
            );
        }
        self.policies[0].1.reload(&config.policy)?;
        partitions::reload(&config.partitions, &config.policy, &self.policies)
    }

    /// Opens the audit file again under its name: the previous one may have been renamed.
    pub fn reopen_audit(&self) {
        self.audit.reopen();
    }

    /// The addresses at which others reach this node, with real port numbers.
    pub fn addresses(&self) -> &Addresses {
        &self.bootstrap.addresses
    }

    /// Writes of the default partition and of the whole cluster.
    pub fn write_backend(&self) -> Arc<dyn WriteBackend> {
        self.write_backend_of(PartitionName::default())
    }

    /// Writes of another partition than the default one.
    pub fn write_backend_of(&self, partition: PartitionName) -> Arc<dyn WriteBackend> {
        Arc::new(PartitionBackend {
            id: None,
            name: partition,
            by: None,
            read: self.read.clone(),
            write: self.write.clone(),
        })
    }

    /// Reads of the default partition.
    pub fn read_backend(&self) -> Arc<dyn ReadBackend> {
        self.read.clone()
    }

    /// Whether this node can work at all, independently of its cluster: the threads that serve
    /// requests accept a task, and no vital task has ended.
    pub(crate) async fn is_alive(&self) -> bool {
        self.requests.run(async {}).await;
        self.tasks.ended().is_none()
    }

    /// Why this node cannot promise to carry out requests now, if it cannot.
    pub(crate) async fn problem(&self) -> Option<String> {
        self.checks.problem().await
    }

    /// The status without values that take time to compute; `GET /v1/status` adds them.
    pub fn status(&self) -> NodeStatus {
        node_status(&self.bootstrap)
    }

    /// The node's own view of its role, without asking another node; `None` before it belongs to a
    /// cluster. Simulations inspect it between two steps.
    pub fn role(&self) -> Option<Role> {
        let running = self.bootstrap.slot.get()?;
        let (vote, leads) = running.replica.vote();
        Some(Role { vote, leads })
    }

    /// The applied state; `None` before this node belongs to a cluster. Does not keep the disk
    /// open.
    pub fn views(&self) -> Option<Views> {
        Some(self.bootstrap.slot.get()?.replica.views.clone())
    }

    /// The index after which this node retains all changes; `None` before it belongs to a cluster.
    pub fn change_log_floor(&self) -> Option<u64> {
        Some(self.bootstrap.slot.get()?.replica.ledger.floor().index)
    }

    /// Fails `/readyz` and gives load balancers time to notice, hands leadership over, finishes
    /// current requests, then stops and closes the disk.
    pub async fn shutdown(self) {
        let leaving = &self.bootstrap.slot.leaving;
        leaving.stop();
        let api = &self.config.api;
        if api.drain_notice_ms > 0 && leaving.receives_balancer_traffic() {
            log!(
                NO_LONGER_READY,
                ms = api.drain_notice_ms,
                "no longer ready; answering requests until load balancers have noticed"
            );
            sleep(Duration::from_millis(api.drain_notice_ms)).await;
        }
        if let Some(running) = self.bootstrap.slot.get() {
            let patience = self.bootstrap.config.raft.waits().step_aside();
            if let Err(reason) = step_aside(&running, patience).await {
                log!(LEADERSHIP_KEPT, reason, "could not hand leadership over");
            }
        }
        self.drain.finish(DRAIN).await;
        self.audit.finish().await;
        self.kill().await;
        log!(STOPPED, "stopped");
    }

    /// Stops at once, without further answers, and closes the disk.
    pub async fn kill(self) {
        let running = self.bootstrap.slot.take();
        self.tasks.stop().await;
        let Some(running) = running else {
            return;
        };
        running.stop().await;
        drop(running);
        // Raft's tasks and the disk's own thread end by themselves, and with them the last handle
        // of the disk. A node that is started again at once must find it closed.
        let dir = self.bootstrap.config.data_dir.clone();
        let closed = async {
            while placement_raft_store::in_use(&dir) {
                sleep(CLOSING).await;
            }
        };
        if tokio::time::timeout(CLOSING_MAX, closed).await.is_err() {
            log!(
                DATA_DIRECTORY_STILL_OPEN,
                dir = %dir.display(),
                "the data directory is still open"
            );
        }
    }
}

impl Drop for Node {
    /// A node that is dropped stops as if it had crashed.
    fn drop(&mut self) {
        self.tasks.abandon();
    }
}

/// Checks the policy files periodically, on a thread that may wait for their disk.
async fn look_at_policy(policy: Arc<Policy>, offload: Arc<dyn Offload>) {
    loop {
        sleep(POLICY_LOOK).await;
        // SIGHUP may add files later.
        if policy.has_files() {
            let policy = policy.clone();
            world::compute(|work| offload.run(work), move || policy.reload_if_changed()).await;
        }
    }
}

/// Asks the leader periodically for its commit index, so that the staleness is known even without
/// reads.
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
            // Without an answer the staleness grows.
            let _ = running.linearize(Instant::now() + every).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::{Builder, Runtime};
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn node_is_alive_while_it_takes_requests_and_no_task_has_ended() {
        let (dir, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
        let requests = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
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
