//! Usage of a provider, and by project, user and consumer type. Usages are running sums, so a query
//! costs the same for ten consumers as for a million.

use std::collections::BTreeMap;

use crate::state::State;
use crate::state::change::ResourceClassId;
use crate::state::tree::Stock;
use crate::state::usage_sums::TypeSum;
use crate::types::{
    ConsumerTypeName, Generation, ProjectId, ProviderUuid, ResourceClassName, UserId,
};

/// Usage of all consumers of one type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TypeUsage {
    /// Number of consumers with allocations.
    pub consumer_count: u64,
    /// Units per class, at least 1 each.
    pub usages: BTreeMap<ResourceClassName, u64>,
}

impl State {
    /// The generation of a provider and its used units per class. Every class with an inventory is
    /// included, also with 0 used units.
    pub fn provider_usages(
        &self,
        provider: &ProviderUuid,
    ) -> Option<(Generation, BTreeMap<ResourceClassName, u64>)> {
        let usage = |stock: &Stock| (self.resource_class_name(stock.class).clone(), stock.used);
        self.read_provider(provider, |node| {
            node.inventories.iter().map(usage).collect()
        })
    }

    /// Number of consumers with allocations per consumer type (`None`: no type, shown as
    /// `unknown`).
    pub fn consumers_by_type(&self) -> BTreeMap<Option<&ConsumerTypeName>, u64> {
        let mut consumers = BTreeMap::new();
        for (consumer_type, sum) in self.consumers.sums().per_project().flatten() {
            *consumers.entry(consumer_type.as_ref()).or_default() += sum.consumers;
        }
        consumers
    }

    /// Usage of a project, or of one user within it, per consumer type (`None`: no type, shown as
    /// `unknown`). Types without usage are omitted.
    pub fn usages(
        &self,
        project: &ProjectId,
        user: Option<&UserId>,
    ) -> BTreeMap<Option<ConsumerTypeName>, TypeUsage> {
        let Some(sums) = self.consumers.sums().get(project, user) else {
            return BTreeMap::new();
        };
        let name = |id: ResourceClassId| self.resource_class_name(id).clone();
        let usage = |sum: &TypeSum| TypeUsage {
            consumer_count: sum.consumers,
            usages: sum
                .units
                .iter()
                .map(|(id, units)| (name(*id), *units))
                .collect(),
        };
        let sums = sums.iter();
        sums.map(|(consumer_type, sum)| (consumer_type.clone(), usage(sum)))
            .collect()
    }
}
