//! Allocations, by consumer and by provider.

use crate::state::State;
use crate::state::change::{Amount, ProviderId};
use crate::types::{
    ConsumerTypeName, ConsumerUuid, Generation, ProjectId, ProviderUuid, ResourceClassName,
    Timestamp, UserId,
};

/// A consumer and its allocations. `allocations` may be empty: a consumer can exist without
/// allocations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// The generation, for optimistic concurrency control.
    pub generation: Generation,
    /// The project that owns the allocations.
    pub project: ProjectId,
    /// The user that owns the allocations.
    pub user: UserId,
    /// The consumer type; `None` is shown as `unknown`.
    pub consumer_type: Option<ConsumerTypeName>,
    /// One entry per provider, in the order of the providers' creation.
    pub allocations: Vec<ConsumerHolding>,
    /// Time of the last write to the allocations.
    pub modified: Timestamp,
}

/// The allocation of one consumer on one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerHolding {
    /// The UUID of the provider.
    pub provider: ProviderUuid,
    /// The generation of the provider.
    pub generation: Generation,
    /// Units per class, in the order of the classes' creation.
    pub resources: Vec<(ResourceClassName, u64)>,
}

/// The allocation of one consumer on the requested provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderHolding {
    /// The UUID of the consumer.
    pub consumer: ConsumerUuid,
    /// The generation of the consumer.
    pub consumer_generation: Generation,
    /// Units per class, in the order of the classes' creation.
    pub resources: Vec<(ResourceClassName, u64)>,
    /// Time of the last write to the allocations.
    pub modified: Timestamp,
}

impl State {
    /// The consumer with this UUID, or `None` if no record exists.
    pub fn consumer(&self, consumer: &ConsumerUuid) -> Option<Consumer> {
        let row = self.consumers.row(consumer)?;
        let holding = |(id, amounts): (ProviderId, &[Amount])| {
            let node = self
                .node_by_id(id)
                .expect("the provider of an allocation exists");
            ConsumerHolding {
                provider: node.uuid,
                generation: node.generation,
                resources: self.named(amounts),
            }
        };
        Some(Consumer {
            generation: row.generation,
            project: row.project.clone(),
            user: row.user.clone(),
            consumer_type: row.consumer_type.clone(),
            allocations: row.allocations.by_provider().map(holding).collect(),
            modified: row.updated_at,
        })
    }

    /// The generation of a provider and its allocations by consumer, in the order of the consumers'
    /// UUIDs, or `None` if the provider does not exist.
    pub fn provider_holdings(
        &self,
        provider: &ProviderUuid,
    ) -> Option<(Generation, impl Iterator<Item = ProviderHolding>)> {
        let node = self.node(self.place(provider)?);
        let holding = |consumer: &ConsumerUuid| {
            let row = self
                .consumers
                .row(consumer)
                .expect("a holder is a consumer");
            ProviderHolding {
                consumer: consumer.clone(),
                consumer_generation: row.generation,
                resources: self.named(row.allocations.on_provider(node.id)),
                modified: row.updated_at,
            }
        };
        let holders = self.consumers.holders(node.id);
        Some((node.generation, holders.map(holding)))
    }

    pub(super) fn named(&self, amounts: &[Amount]) -> Vec<(ResourceClassName, u64)> {
        let name = |class| self.resource_class_name(class).clone();
        let amounts = amounts.iter();
        amounts
            .map(|amount| (name(amount.class), amount.units))
            .collect()
    }
}
