//! The APIs of the partitions that this node serves beside the default one (`[[partitions]]`). Each has doors, a
//! policy and limits of its own, and shares with the others what the process has once.

use std::sync::Arc;

use crate::cluster::StartError;
use crate::cluster::partition_door::PartitionDoor;
use crate::cluster::write_door::Writes;
use crate::config::{Config, ConfigError, Way};
use crate::doors::ReadDoor;
use crate::http::{Api, Callers, Policy, PolicyError, Service};

/// An API of a partition, and the way that leads to it.
pub(crate) struct Served {
    /// The partition.
    pub(crate) name: String,
    pub(crate) way: Way,
    pub(crate) api: Service,
}

/// A policy that is read and read anew.
pub(crate) type NamedPolicy = (String, Arc<Policy>);

/// Makes the APIs, and the policies of those that have one of their own. `api` is that of the default partition.
pub(crate) fn serve(
    config: &Config,
    api: &Service,
    read: &Arc<dyn ReadDoor>,
    write: &Arc<Writes>,
) -> Result<(Vec<Served>, Vec<NamedPolicy>), StartError> {
    let (mut served, mut policies) = (Vec::new(), Vec::new());
    let default = api.api();
    for partition in &config.partitions {
        let door = PartitionDoor::new(partition.name()?, read.clone(), write.clone());
        let door = Arc::new(door);
        let mut first: Option<Service> = None;
        for way in partition.ways()? {
            let settings = partition.settings(&default.settings, &way);
            let service = match &first {
                Some(first) => first.reached_by(settings),
                None => {
                    let policy = match &partition.policy_file {
                        None => default.policy.clone(),
                        Some(_) => {
                            let policy = Policy::read(&settings.policy).map_err(|error| {
                                let name = &partition.name;
                                StartError::Policy(format!("of partition {name}: {error}"))
                            })?;
                            let policy = Arc::new(policy);
                            policies.push((partition.name.clone(), policy.clone()));
                            policy
                        }
                    };
                    api.beside(Api {
                        read: door.clone(),
                        write: door.clone(),
                        policy,
                        settings,
                        ..default.clone()
                    })
                }
            };
            first.get_or_insert_with(|| service.clone());
            served.push(Served {
                name: partition.name.clone(),
                way,
                api: service,
            });
        }
    }
    Ok((served, policies))
}

/// The callers of each of them: the ways to one partition count together.
pub(crate) fn callers(served: &[Served]) -> Vec<Arc<Callers>> {
    let mut callers: Vec<_> = served.iter().map(|served| served.api.callers()).collect();
    callers.dedup_by(|one, other| Arc::ptr_eq(one, other));
    callers
}

/// Reads the policies of partitions anew.
///
/// # Errors
/// One that cannot be understood; its rules from before stay in force.
pub(crate) fn reload(config: &Config, policies: &[NamedPolicy]) -> Result<(), PolicyError> {
    for (name, settings) in config.policies_of_partitions() {
        if let Some((_, policy)) = policies.iter().find(|(of, _)| *of == name) {
            policy.reload(&settings)?;
        }
    }
    Ok(())
}

/// Why a changed configuration is not taken over.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// It cannot be used at all.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A policy file cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}
