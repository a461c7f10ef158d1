//! The APIs of partitions. Each partition has a backend, a policy and limits of its own, and shares with the others what the
//! process has once. They are made as requests come: which partitions there are, and which requests are theirs, is in
//! the state of the cluster, and changes.

mod face;
mod settings;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use placement_model::cluster::RoutedBy;
use placement_model::types::{PartitionName, PathPrefix};
use prometheus_client::metrics::counter::Counter;

pub(crate) use self::face::Face;
pub use self::settings::PartitionSection;
pub(crate) use self::settings::own_policies;
use crate::cluster::StartError;
use crate::cluster::backend::partition::PartitionBackend;
use crate::cluster::backend::write::Writes;
use crate::health::HealthChecks;
use placement_api::backend::{ReadBackend, WriteBackend};
use placement_api::http::{Api, Policy, PolicyError, PolicySettings, PublicAddress, Service};

/// Most faces of a partition that are kept. It has a few routes; those that are gone are forgotten with all others.
const FACES_MAX: usize = 256;

/// A policy that is read and read again.
pub(crate) type NamedPolicy = (String, Arc<Policy>);

/// Makes the APIs of all partitions.
pub(crate) struct Partitions {
    /// That of the default partition.
    default: Service,
    read: Arc<dyn ReadBackend>,
    write: Arc<Writes>,
    sections: Vec<PartitionSection>,
    policies: Vec<NamedPolicy>,
    checks: HealthChecks,
    /// Of each partition that was asked for.
    kept: Mutex<BTreeMap<PartitionName, Kept>>,
    /// What partitions that are gone have counted.
    gone: Mutex<Counts>,
}

/// What is kept of a partition.
struct Kept {
    /// Its first API. All routes to a partition count together.
    first: Service,
    requests: Counter,
    faces: HashMap<RoutedBy, Arc<Face>>,
}

impl Kept {
    fn new(first: Service) -> Self {
        Self {
            first,
            requests: Counter::default(),
            faces: HashMap::new(),
        }
    }
}

/// What partitions count.
#[derive(Clone, Default)]
pub(crate) struct Counts {
    /// Requests that were answered, by partition.
    pub(crate) requests: Vec<(String, u64)>,
    /// Searches that wait for their turn.
    pub(crate) searches_waiting: u64,
    /// Requests that were refused, by the bound; searches, by their result; empty ones, by the reason: of all together.
    pub(crate) sums: [BTreeMap<&'static str, u64>; 3],
}

impl Counts {
    fn add(&mut self, of: &Service) {
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
    /// `api` is what the API of the default partition stands on.
    pub(crate) fn open(
        sections: &[PartitionSection],
        api: Api,
        read: Arc<dyn ReadBackend>,
        write: Arc<Writes>,
        checks: HealthChecks,
    ) -> Result<Self, StartError> {
        let mut policies = Vec::new();
        for (name, settings) in own_policies(sections, &api.settings.policy) {
            let policy = Policy::read(&settings)
                .map_err(|error| StartError::Policy(format!("of partition {name}: {error}")))?;
            policies.push((name, Arc::new(policy)));
        }
        let default = Service::new(api);
        let kept = (PartitionName::default(), Kept::new(default.clone()));
        Ok(Self {
            default,
            read,
            write,
            sections: sections.to_vec(),
            policies,
            checks,
            kept: Mutex::new([kept].into()),
            gone: Mutex::default(),
        })
    }

    /// The API of the default partition, by whatever route: `/` and errors come from it.
    pub(crate) fn default(&self) -> &Service {
        &self.default
    }

    /// The policies of partitions that have one of their own.
    pub(crate) fn policies(&self) -> &[NamedPolicy] {
        &self.policies
    }

    /// What is counted now.
    pub(crate) fn counts(&self) -> Counts {
        let mut kept = self.kept.lock();
        self.forget_deleted(&mut kept);
        let mut counts = self.gone.lock().clone();
        for (name, of) in &*kept {
            counts.add(&of.first);
            counts.searches_waiting += of.first.searches_waiting() as u64;
            counts.requests.push((name.to_string(), of.requests.get()));
        }
        counts
    }

    /// Forgets partitions that were deleted, but for those in `[[partitions]]`, which may have listeners.
    fn forget_deleted(&self, kept: &mut BTreeMap<PartitionName, Kept>) {
        let Some(running) = self.checks.slot.get() else {
            return;
        };
        let current = running.replica.views.current();
        let others = current.cluster.partitions();
        let there: BTreeSet<_> = others.map(|(_, row, _)| &row.name).collect();
        kept.retain(|name, of| {
            let is_there = name.is_default() || there.contains(name);
            let stays = is_there || self.section(name).is_some();
            if !stays {
                self.gone.lock().add(&of.first);
            }
            stays
        });
    }

    fn section(&self, name: &PartitionName) -> Option<&PartitionSection> {
        let mut sections = self.sections.iter();
        sections.find(|section| section.name == name.as_str())
    }

    /// What clients see that come by this route.
    pub(crate) fn face(&self, name: &PartitionName, by: RoutedBy) -> Arc<Face> {
        if let Some(kept) = self.kept.lock().get(name)
            && let Some(face) = kept.faces.get(&by)
        {
            return face.clone();
        }
        let face = self.new_face(name, Some(by.clone()));
        if let Some(kept) = self.kept.lock().get_mut(name) {
            if kept.faces.len() >= FACES_MAX {
                kept.faces.clear();
            }
            kept.faces.insert(by, face.clone());
        }
        face
    }

    /// The same, made for this; `None`: they come by its own listener.
    pub(crate) fn new_face(&self, name: &PartitionName, by: Option<RoutedBy>) -> Arc<Face> {
        let (api, requests) = self.api(name, by);
        Face::new(api, &self.checks, requests)
    }

    /// The API of a partition that exists, for operators: where they reach it, with the searches and the memory of its
    /// clients.
    pub(crate) fn for_operators(&self, name: &PartitionName) -> Service {
        let (of_clients, _) = self.api(name, None);
        let mut api = of_clients.api().clone();
        api.settings.public = PublicAddress {
            prefix: prefix_for_operators(name),
            ..PublicAddress::default()
        };
        of_clients.reached_by(api)
    }

    /// Writes of this process to a partition.
    pub(crate) fn writes(&self, name: &PartitionName) -> Arc<dyn WriteBackend> {
        self.backend(name, None)
    }

    fn backend(&self, name: &PartitionName, by: Option<RoutedBy>) -> Arc<PartitionBackend> {
        Arc::new(PartitionBackend {
            name: name.clone(),
            by,
            read: self.read.clone(),
            write: self.write.clone(),
        })
    }

    /// The API of a partition, for the requests that are routed so (`None`: they come by its own listener), and what counts
    /// them.
    fn api(&self, name: &PartitionName, by: Option<RoutedBy>) -> (Service, Counter) {
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
        let backend = self.backend(name, by);
        let api = Api {
            read: backend.clone(),
            write: backend,
            policy,
            settings,
            ..default.clone()
        };
        let mut kept = self.kept.lock();
        if !kept.contains_key(name) {
            self.forget_deleted(&mut kept);
        }
        let of = (kept.entry(name.clone()))
            .or_insert_with(|| Kept::new(self.default.for_partition(api.clone())));
        (of.first.reached_by(api), of.requests.clone())
    }
}

/// Where operators reach the API of a partition at their listener, before its name.
pub(crate) const FOR_OPERATORS: &str = "/v1/placement/";

/// Where operators reach the API of this partition.
pub(crate) fn prefix_for_operators(name: &PartitionName) -> PathPrefix {
    let prefix = format!("{FOR_OPERATORS}{name}").parse();
    prefix.expect("the name of a partition is a segment of a path")
}

/// Reads the policies of partitions again.
///
/// # Errors
/// One that cannot be understood; its rules from before stay in force.
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
