//! The usages of providers and projects equal the sums of their allocations (Placement's definition
//! of a usage).

use std::collections::{BTreeMap, BTreeSet};

use placement_model::Command;
use placement_model::command::{Claim, ReplaceAllocations, Reshape};
use placement_model::types::{ConsumerUuid, ProjectId};

use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "usages are sums";

/// Recomputes usages after each command that changes allocations.
#[derive(Debug, Default)]
pub struct UsagesAreSums {
    consumers: BTreeSet<ConsumerUuid>,
    projects: BTreeSet<ProjectId>,
}

impl Invariant for UsagesAreSums {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        match &applied.stamped.command {
            Command::ReplaceAllocations(ReplaceAllocations { consumers })
            | Command::Reshape(Reshape {
                allocations: consumers,
                ..
            }) => {
                for one in consumers {
                    self.consumers.insert(one.consumer.clone());
                    self.projects.insert(one.project.clone());
                }
            }
            Command::Claim(Claim { claimants, .. }) => {
                for one in claimants {
                    self.consumers.insert(one.consumer.clone());
                    self.projects.insert(one.project.clone());
                }
            }
            _ => return Ok(()),
        }
        self.providers(applied)?;
        self.projects(applied)
    }
}

impl UsagesAreSums {
    fn providers(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        for node in applied.after.trees().flat_map(|(_, tree)| &tree.nodes) {
            let uuid = &node.uuid;
            let (Some((_, held)), Some((_, mut usages))) = (
                applied.after.provider_holdings(uuid),
                applied.after.provider_usages(uuid),
            ) else {
                return Err(format!("{uuid} is not found"));
            };
            let mut sums = BTreeMap::new();
            for one in held {
                // Some consumers may be known only from a backup.
                self.consumers.insert(one.consumer);
                for (class, amount) in one.resources {
                    *sums.entry(class).or_default() += amount;
                }
            }
            usages.retain(|_, amount: &mut u64| *amount > 0);
            if usages != sums {
                return Err(format!(
                    "{uuid} has usages {usages:?}, but {sums:?} is allocated"
                ));
            }
        }
        Ok(())
    }

    fn projects(&self, applied: &Applied<'_>) -> Result<(), String> {
        let mut sums: BTreeMap<ProjectId, u64> = BTreeMap::new();
        for consumer in self
            .consumers
            .iter()
            .filter_map(|uuid| applied.after.consumer(uuid))
        {
            let held = consumer.allocations.iter().flat_map(|one| &one.resources);
            *sums.entry(consumer.project.clone()).or_default() +=
                held.map(|(_, amount)| amount).sum::<u64>();
        }
        for project in &self.projects {
            let usages = applied.after.usages(project, None);
            let counted: u64 = usages.values().flat_map(|one| one.usages.values()).sum();
            let sum = sums.get(project).copied().unwrap_or_default();
            if counted != sum {
                return Err(format!(
                    "{project:?} has usage {counted}, but {sum} is allocated"
                ));
            }
        }
        Ok(())
    }
}
