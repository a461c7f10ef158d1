//! The APIs of partitions. Each partition has a backend, a policy and limits of its own; all
//! partitions share the resources of the process. APIs are created as requests arrive: the state of
//! the cluster determines, and may change, which partitions exist and which requests are theirs.
//!
//! State about clients (searches, events, limits) belongs to the id of a partition, settings to its
//! name: a new partition with the name of a deleted one gets the same settings, but not that state.

mod partition_api;
mod settings;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use placement_model::cluster::RoutedBy;
use placement_model::types::{PartitionId, PartitionName, PathPrefix};
use prometheus_client::metrics::counter::Counter;

pub(crate) use self::partition_api::PartitionApi;
pub use self::settings::PartitionSection;
pub(crate) use self::settings::own_policies;
use crate::health::HealthChecks;
use placement_api::http::{Api, ClaimCounts, LimitCounts, PublicAddress, Service};
use placement_base::backend::{ReadBackend, WriteBackend};
use placement_cluster::StartError;
use placement_cluster::backend::partition::{PartitionBackend, Writes};
use placement_policy::{Policy, PolicyError, PolicySettings};

/// Maximum number of cached APIs of a partition. A partition has only a few routes; once APIs of
/// removed routes fill the cache, it is cleared.
const APIS_MAX: usize = 256;

/// A partition's name and its policy, which is reloaded.
pub(crate) type NamedPolicy = (String, Arc<Policy>);

/// Creates the APIs of all partitions.
pub(crate) struct Partitions {
    /// The API of the default partition.
    default: Service,
    read: Arc<dyn ReadBackend>,
    write: Arc<Writes>,
    sections: Vec<PartitionSection>,
    policies: Vec<NamedPolicy>,
    checks: HealthChecks,
    /// The state of each requested partition.
    kept: Mutex<BTreeMap<PartitionId, PartitionState>>,
    /// The counters of deleted partitions.
    gone: Mutex<Counts>,
}

/// The kept state of a partition.
struct PartitionState {
    name: PartitionName,
    /// Its first API, whose counters all routes to the partition share.
    first: Service,
    requests: Counter,
    /// APIs by route; `None`: its own listener.
    apis: HashMap<Option<RoutedBy>, Arc<PartitionApi>>,
}

impl PartitionState {
    fn new(name: PartitionName, first: Service) -> Self {
        Self {
            name,
            first,
            requests: Counter::default(),
            apis: HashMap::new(),
        }
    }
}

/// The counters of partitions.
#[derive(Clone, Default)]
pub(crate) struct Counts {
    /// Answered requests, by partition.
    pub(crate) requests: Vec<(String, u64)>,
    /// Number of searches that wait for their turn.
    pub(crate) searches_waiting: u64,
    /// Claims of all partitions.
    pub(crate) claims: ClaimCounts,
    /// Exceeded limits of projects of all partitions.
    pub(crate) limits: LimitCounts,
    /// Sums over all partitions: refused requests by limit, searches by result, empty searches by
    /// reason.
    pub(crate) sums: [BTreeMap<&'static str, u64>; 3],
}

impl Counts {
    fn add(&mut self, of: &Service) {
        self.claims.add(of.claims());
        self.limits.add(of.exceeded_limits());
        let searches = of.searches();
        let of_one = [
            of.callers().refused().into(),
            searches.results().into(),
            searches.empty(),
        ];
        for (sums, of_one) in self.sums.iter_mut().zip(of_one) {
            for (label, count) in of_one {
                *sums.entry(label).or_default() += count;
            }
        }
    }
}

impl Partitions {
    /// `api` is the API of the default partition.
    pub(crate) fn open(
        sections: &[PartitionSection],
        api: Api,
        read: Arc<dyn ReadBackend>,
        write: Arc<Writes>,
        checks: HealthChecks,
    ) -> Result<Self, StartError> {
        let mut policies = Vec::new();
        for (name, settings) in own_policies(sections, &api.settings.policy) {
            let policy = placement_api::http::read_policy(&settings)
                .map_err(|error| StartError::Policy(format!("of partition {name}: {error}")))?;
            policies.push((name, Arc::new(policy)));
        }
        let default = Service::new(api);
        let kept = PartitionState::new(PartitionName::default(), default.clone());
        Ok(Self {
            default,
            read,
            write,
            sections: sections.to_vec(),
            policies,
            checks,
            kept: Mutex::new([(PartitionId::DEFAULT, kept)].into()),
            gone: Mutex::default(),
        })
    }

    /// The API of the default partition on any route, which also serves `/` and errors.
    pub(crate) fn default(&self) -> &Service {
        &self.default
    }

    /// The policies of partitions with a policy of their own.
    pub(crate) fn policies(&self) -> &[NamedPolicy] {
        &self.policies
    }

    /// The current counters, including those of deleted partitions.
    pub(crate) fn counts(&self) -> Counts {
        let mut kept = self.kept.lock();
        self.forget_deleted(&mut kept);
        let mut counts = self.gone.lock().clone();
        for of in kept.values() {
            counts.add(&of.first);
            counts.searches_waiting += of.first.searches_waiting() as u64;
            (counts.requests).push((of.name.to_string(), of.requests.get()));
        }
        counts
    }

    /// Drops deleted partitions, and keeps their counters.
    fn forget_deleted(&self, kept: &mut BTreeMap<PartitionId, PartitionState>) {
        let Some(running) = self.checks.slot.get() else {
            return;
        };
        let current = running.replica.views.current();
        kept.retain(|id, of| {
            let exists = current.cluster.partition(*id).is_some();
            if !exists {
                self.gone.lock().add(&of.first);
            }
            exists
        });
    }

    fn section(&self, name: &PartitionName) -> Option<&PartitionSection> {
        let mut sections = self.sections.iter();
        sections.find(|section| section.name == name.as_str())
    }

    /// The API for clients that use this route (`None`: the partition's own listener).
    pub(crate) fn partition_api(
        &self,
        id: PartitionId,
        name: &PartitionName,
        by: Option<RoutedBy>,
    ) -> Arc<PartitionApi> {
        if let Some(kept) = self.kept.lock().get(&id)
            && let Some(partition_api) = kept.apis.get(&by)
        {
            return partition_api.clone();
        }
        let (api, requests) = self.api(id, name, by.clone());
        let partition_api = PartitionApi::new(api, &self.checks, requests);
        if let Some(kept) = self.kept.lock().get_mut(&id) {
            if kept.apis.len() >= APIS_MAX {
                kept.apis.clear();
            }
            kept.apis.insert(by, partition_api.clone());
        }
        partition_api
    }

    /// The API for a partition's own listener. It is created before the node knows whether the
    /// partition exists.
    pub(crate) fn unknown_partition_api(&self, name: &PartitionName) -> Arc<PartitionApi> {
        let api = self.default.for_partition(self.api_of(None, name, None));
        PartitionApi::new(api, &self.checks, Counter::default())
    }

    /// The API of an existing partition for operators, at their path. It shares the limits of
    /// callers and searches with the API for clients.
    pub(crate) fn for_operators(&self, id: PartitionId, name: &PartitionName) -> Service {
        let (of_clients, _) = self.api(id, name, None);
        let mut api = of_clients.api().clone();
        api.settings.public = PublicAddress {
            prefix: prefix_for_operators(name),
            ..PublicAddress::default()
        };
        of_clients.reached_by(api)
    }

    /// Writes of this process to a partition.
    pub(crate) fn writes(&self, id: PartitionId, name: &PartitionName) -> Arc<dyn WriteBackend> {
        self.backend(Some(id), name, None)
    }

    fn backend(
        &self,
        id: Option<PartitionId>,
        name: &PartitionName,
        by: Option<RoutedBy>,
    ) -> Arc<PartitionBackend> {
        Arc::new(PartitionBackend {
            id,
            name: name.clone(),
            by,
            read: self.read.clone(),
            write: self.write.clone(),
        })
    }

    /// The API of a partition for requests on this route, and the counter of its requests.
    fn api(
        &self,
        id: PartitionId,
        name: &PartitionName,
        by: Option<RoutedBy>,
    ) -> (Service, Counter) {
        let api = self.api_of(Some(id), name, by);
        let mut kept = self.kept.lock();
        if !kept.contains_key(&id) {
            self.forget_deleted(&mut kept);
        }
        let new = || PartitionState::new(name.clone(), self.default.for_partition(api.clone()));
        let of = kept.entry(id).or_insert_with(new);
        (of.first.reached_by(api), of.requests.clone())
    }

    /// The parts of a partition's API.
    fn api_of(&self, id: Option<PartitionId>, name: &PartitionName, by: Option<RoutedBy>) -> Api {
        let default = self.default.api();
        let (mut settings, mut policy) = (default.settings.clone(), default.policy.clone());
        if !name.is_default() {
            let unnamed = || PartitionSection {
                name: name.to_string(),
                ..PartitionSection::default()
            };
            let section = self.section(name).cloned().unwrap_or_else(unnamed);
            settings = section.settings(&settings, by.as_ref());
            let mut own = self.policies.iter();
            if let Some((_, own)) = own.find(|(of, _)| of == name.as_str()) {
                policy = own.clone();
            }
        }
        let backend = self.backend(id, name, by);
        Api {
            read: backend.clone(),
            write: backend,
            policy,
            settings,
            ..default.clone()
        }
    }
}

/// Path of the partitions' APIs on the admin listener, before the name.
pub(crate) const FOR_OPERATORS: &str = "/v1/placement/";

/// Path of this partition's API on the admin listener.
pub(crate) fn prefix_for_operators(name: &PartitionName) -> PathPrefix {
    let prefix = format!("{FOR_OPERATORS}{name}").parse();
    prefix.expect("the name of a partition is a segment of a path")
}

/// Reloads the policies of partitions.
///
/// # Errors
/// An invalid policy; its previous rules stay in force.
pub(crate) fn reload(
    sections: &[PartitionSection],
    default: &PolicySettings,
    policies: &[NamedPolicy],
) -> Result<(), PolicyError> {
    for (name, settings) in own_policies(sections, default) {
        if let Some((_, policy)) = policies.iter().find(|(of, _)| *of == name) {
            policy.reload(&settings)?;
        }
    }
    Ok(())
}
