//! Usages equal the sums of the allocations, of providers and of projects.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::Command;
use placement_model::command::ReplaceAllocations;
use placement_model::types::{ConsumerUuid, ProjectId};

use super::{Applied, Invariant, Providers};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UsagesAreSums {
    known: Providers,
    consumers: BTreeSet<ConsumerUuid>,
    projects: BTreeSet<ProjectId>,
}

impl Invariant for UsagesAreSums {
    fn name(&self) -> &'static str {
        "usages are sums"
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        self.providers(applied)?;
        self.projects(applied)?;
        self.known.learn(&applied.stamped.command);
        if let Command::ReplaceAllocations(ReplaceAllocations { consumers }) =
            &applied.stamped.command
        {
            self.consumers
                .extend(consumers.iter().map(|one| one.consumer.clone()));
            self.projects
                .extend(consumers.iter().map(|one| one.project.clone()));
        }
        Ok(())
    }
}

impl UsagesAreSums {
    fn providers(&self, applied: &Applied<'_>) -> Result<(), String> {
        for uuid in &self.known.0 {
            let (Some(held), Some(used)) = (
                applied.before.provider_allocations(uuid),
                applied.before.provider_usages(uuid),
            ) else {
                continue;
            };
            let mut sums = BTreeMap::new();
            for (class, amount) in held.consumers.iter().flat_map(|one| &one.resources) {
                *sums.entry(class.clone()).or_default() += amount;
            }
            let mut usages = used.usages;
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
            .filter_map(|uuid| applied.before.consumer(uuid))
        {
            let held = consumer.allocations.iter().flat_map(|one| &one.resources);
            *sums.entry(consumer.project.clone()).or_default() +=
                held.map(|(_, amount)| amount).sum::<u64>();
        }
        for project in &self.projects {
            let usages = applied.before.usages(project, None);
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
