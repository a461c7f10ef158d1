//! The stages of a node's start, each with the objects that it creates. Nothing runs before all of
//! them are complete.

use std::iter::once;
use std::sync::Arc;
use std::time::Duration;

use placement_model::types::PartitionName;

use crate::admin::{Admin, Recording};
use crate::config::Config;
use crate::health::HealthChecks;
use crate::metrics::{Metrics, Sources};
use crate::partitions::{NamedPolicy, Partitions};
use crate::recent::Recent;
use placement_api::http::{Api, ApiSettings, AuthStrategy};
use placement_api::keystone::Keystone;
use placement_audit::{Audit, Listener};
use placement_base::log_messages::log;
use placement_base::tasks::Tasks;
use placement_cluster::backend::ledger_reader::LedgerReader;
use placement_cluster::backend::partition::Writes;
use placement_cluster::backend::read::Reads;
use placement_cluster::backlog::Backlog;
use placement_cluster::env::Env;
use placement_cluster::slot::Slot;
use placement_cluster::start::Bootstrap;
use placement_cluster::{Addresses, StartError};
use placement_peer::raft::peers::Peers;
use placement_peer::tls::{Link, Secured};
use placement_policy::Policy;

/// First stage: files and keys that the configuration names, opened and checked.
pub(super) struct OpenedResources {
    pub(super) settings: ApiSettings,
    pub(super) keystone: Option<Arc<Keystone>>,
    pub(super) secured: Secured,
    pub(super) policy: Arc<Policy>,
    pub(super) audit: Audit,
}

impl OpenedResources {
    pub(super) fn open(env: &Env, config: &Config) -> Result<Self, StartError> {
        let settings = config.api_settings()?;
        let keystone = match settings.auth.strategy {
            AuthStrategy::Keystone => {
                let (net, clock) = (env.net.clone(), env.clock.clone());
                Some(Arc::new(Keystone::open(&config.keystone, net, clock)?))
            }
            AuthStrategy::Proxy => None,
            AuthStrategy::Noauth2 => {
                log!(
                    AUTHENTICATION_OFF,
                    "the REST API does not authenticate clients ([auth] strategy = \"noauth2\")"
                );
                None
            }
        };
        let secured = Secured::open(config.secured()?, config.node_id, env.net.clone())?;
        let policy = placement_api::http::read_policy(&settings.policy);
        let policy = Arc::new(policy.map_err(|error| StartError::Policy(error.to_string()))?);
        let audit = Audit::open(&config.audit, config.node_id, env.clock.clone())?;
        Ok(Self {
            settings,
            keystone,
            secured,
            policy,
            audit,
        })
    }
}

/// The group of tasks of a node, with a handle for each of its two runtimes.
#[derive(Clone)]
pub(super) struct Runtimes {
    /// Spawns tasks on the runtime of Raft.
    pub(super) tasks: Tasks,
    /// Spawns tasks of the same group on the runtime that serves HTTP.
    pub(super) requests: Tasks,
}

impl Runtimes {
    pub(super) fn new(env: &Env) -> Self {
        let tasks = Tasks::on_current_runtime();
        let requests = tasks.on_runtime(env.requests.clone());
        Self { tasks, requests }
    }
}

/// Second stage: the node as a member of a cluster, and the backends over it.
pub(super) struct Core {
    pub(super) bootstrap: Arc<Bootstrap>,
    pub(super) recording: Recording,
    pub(super) write: Arc<Writes>,
    pub(super) read: Arc<Reads>,
    pub(super) checks: HealthChecks,
}

impl Core {
    pub(super) fn new(
        env: Env,
        config: &Config,
        opened: &OpenedResources,
        addresses: Addresses,
        runtimes: &Runtimes,
    ) -> Self {
        let Runtimes { tasks, requests } = runtimes;
        let recording = Recording {
            audit: opened.audit.clone(),
            ids: env.ids.clone(),
            listener: Listener::Admin,
        };
        let own = Arc::new(config.for_cluster());
        let slot = Arc::new(Slot::new(config.node_id, own.wait()));
        let checks = HealthChecks {
            slot: slot.clone(),
            config: own.clone(),
            answers_cut_off: config.reads.default.answers_cut_off(),
            tasks: requests.clone(),
            in_cluster: Recent::new(requests),
            leadership: Arc::default(),
            room: Recent::new(requests),
        };
        let backlog = Backlog::new("this node", &own);
        let bootstrap = Bootstrap {
            slot: slot.clone(),
            peers: peers(config, opened.secured.link.clone(), tasks),
            addresses,
            read_metrics: Arc::default(),
            actions: Arc::new(recording.clone()),
            tasks: tasks.clone(),
            joining: tokio::sync::Mutex::new(()),
            env,
            config: own,
        };
        Self {
            bootstrap: Arc::new(bootstrap),
            recording,
            write: Arc::new(Writes::new(slot.clone(), backlog)),
            read: Arc::new(Reads(slot)),
            checks,
        }
    }

    /// The REST API of the default partition.
    fn api(&self, opened: &OpenedResources, requests: &Tasks) -> Api {
        let Bootstrap { env, slot, .. } = &*self.bootstrap;
        Api {
            write: self.write.clone(),
            read: self.read.clone(),
            ledger: Arc::new(LedgerReader(slot.clone())),
            clock: env.clock.clone(),
            ids: env.ids.clone(),
            offload: env.offload.clone(),
            background: Arc::new(requests.clone()),
            readiness: Arc::new(self.checks.clone()),
            keystone: opened.keystone.clone(),
            policy: opened.policy.clone(),
            audit: opened.audit.clone(),
            settings: opened.settings.clone(),
        }
    }
}

/// Third stage: the APIs of all partitions, and the metrics of the node.
pub(super) struct Apis {
    pub(super) partitions: Arc<Partitions>,
    /// The policy of the default partition, then those of partitions with a policy of their own.
    pub(super) policies: Vec<NamedPolicy>,
    pub(super) metrics: Arc<Metrics>,
}

impl Apis {
    pub(super) fn open(
        core: &Core,
        config: &Config,
        opened: &OpenedResources,
        requests: &Tasks,
    ) -> Result<Self, StartError> {
        let api = core.api(opened, requests);
        let (read, write, checks) = (core.read.clone(), core.write.clone(), &core.checks);
        let partitions = Partitions::open(&config.partitions, api, read, write, checks.clone())?;
        let partitions = Arc::new(partitions);
        let default = (PartitionName::DEFAULT.to_owned(), opened.policy.clone());
        let policies: Vec<_> = once(default)
            .chain(partitions.policies().iter().cloned())
            .collect();
        let metrics = Metrics::new(Sources {
            started: core.bootstrap.env.clock.now(),
            checks: checks.clone(),
            reads: core.bootstrap.read_metrics.clone(),
            policies: policies.iter().map(|(_, policy)| policy.clone()).collect(),
            partitions: partitions.clone(),
            audit: opened.audit.numbers(),
            keystone: opened.keystone.clone(),
            certificates: opened.secured.certificates.clone(),
        });
        Ok(Self {
            partitions,
            policies,
            metrics: Arc::new(metrics),
        })
    }

    /// The routes of operators.
    pub(super) fn admin(&self, core: &Core, config: &Config) -> Admin {
        Admin {
            bootstrap: core.bootstrap.clone(),
            metrics: self.metrics.clone(),
            checks: core.checks.clone(),
            checking: Arc::default(),
            backups: Arc::default(),
            imports: Arc::default(),
            scrapes: Arc::default(),
            write: core.write.clone(),
            read: core.read.clone(),
            partitions: self.partitions.clone(),
            sections: config.partitions.clone().into(),
            settings: config.to_toml().into(),
            shared: Arc::new(config.shared()),
            prefix: config.api.prefix.0.clone(),
            policies: self.policies.clone(),
        }
    }
}

fn peers(config: &Config, link: Link, tasks: &Tasks) -> Arc<Peers> {
    let peers = Peers::new(
        link,
        config.node_id,
        config.node.region.clone(),
        Duration::from_millis(config.peer.connect_ms),
        Duration::from_millis(config.peer.silence_ms),
        tasks.clone(),
    );
    peers.agree_to(config.cluster.level_max());
    Arc::new(peers)
}
