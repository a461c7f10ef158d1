//! The APIs of partitions. Each partition has a backend, a policy and limits of its own, and shares with the others what the
//! process has once. They are made as requests come: which partitions there are, and which requests are theirs, is in
//! the state of the cluster, and changes.

mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use placement_model::cluster::RoutedBy;
use placement_model::types::{PartitionName, PathPrefix};

pub use self::settings::PartitionSection;
pub(crate) use self::settings::own_policies;
use crate::cluster::StartError;
use crate::cluster::backend::partition::PartitionBackend;
use crate::cluster::backend::write::Writes;
use placement_api::backend::{ReadBackend, WriteBackend};
use placement_api::http::{Api, Policy, PolicyError, PolicySettings, PublicAddress, Service};

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
    /// The first API of each other partition that was asked for. All routes to a partition count together.
    first: Mutex<BTreeMap<PartitionName, Service>>,
    /// One of each partition that was asked for: each counts by itself.
    counted: Arc<Mutex<Vec<Service>>>,
}

impl Partitions {
    /// `api` is what the API of the default partition stands on.
    pub(crate) fn open(
        sections: &[PartitionSection],
        api: Api,
        read: Arc<dyn ReadBackend>,
        write: Arc<Writes>,
    ) -> Result<Self, StartError> {
        let mut policies = Vec::new();
        for (name, settings) in own_policies(sections, &api.settings.policy) {
            let policy = Policy::read(&settings)
                .map_err(|error| StartError::Policy(format!("of partition {name}: {error}")))?;
            policies.push((name, Arc::new(policy)));
        }
        let default = Service::new(api);
        Ok(Self {
            counted: Arc::new(Mutex::new(vec![default.clone()])),
            default,
            read,
            write,
            sections: sections.to_vec(),
            policies,
            first: Mutex::default(),
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

    /// What is counted of each partition that was asked for.
    pub(crate) fn counted(&self) -> Arc<Mutex<Vec<Service>>> {
        self.counted.clone()
    }

    /// The API of a partition that exists, for operators: where they reach it, with the searches and the memory of its
    /// clients.
    pub(crate) fn for_operators(&self, name: &PartitionName) -> Service {
        let of_clients = self.api(name, None);
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

    /// The API of a partition, for the requests that are routed so; `None`: they come by its own listener.
    pub(crate) fn api(&self, name: &PartitionName, by: Option<RoutedBy>) -> Service {
        let default = self.default.api();
        let (mut settings, mut policy) = (default.settings.clone(), default.policy.clone());
        if !name.is_default() {
            let named = |section: &&PartitionSection| section.name == name.as_str();
            let unnamed = || PartitionSection {
                name: name.to_string(),
                ..PartitionSection::default()
            };
            let section = self.sections.iter().find(named).cloned();
            settings = section
                .unwrap_or_else(unnamed)
                .settings(&settings, by.as_ref());
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
        if name.is_default() {
            return self.default.reached_by(api);
        }
        let mut first = self.first.lock();
        if let Some(first) = first.get(name) {
            return first.reached_by(api);
        }
        let service = self.default.for_partition(api);
        self.counted.lock().push(service.clone());
        first.insert(name.clone(), service.clone());
        service
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
