//! Who holds what, asked from either side.

use crate::state::State;
use crate::state::change::{Amount, ProviderId};
use crate::types::{
    ConsumerTypeName, ConsumerUuid, Generation, ProjectId, ProviderUuid, ResourceClassName,
    Timestamp, UserId,
};

/// A consumer and what it holds. `allocations` may be empty: a consumer can outlive them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// Its generation.
    pub generation: Generation,
    /// Who is charged.
    pub project: ProjectId,
    /// Who is charged.
    pub user: UserId,
    /// Its type; `None` is shown as `unknown`.
    pub consumer_type: Option<ConsumerTypeName>,
    /// Per provider, in the order of the providers' creation.
    pub allocations: Vec<ConsumerHolding>,
    /// When the allocations were written.
    pub modified: Timestamp,
}

/// What one consumer holds of one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerHolding {
    /// The provider.
    pub provider: ProviderUuid,
    /// The provider's generation.
    pub generation: Generation,
    /// Units per class, in the order of the classes' creation.
    pub resources: Vec<(ResourceClassName, u64)>,
}

/// What one consumer holds of the provider asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderHolding {
    /// The consumer.
    pub consumer: ConsumerUuid,
    /// The consumer's generation.
    pub consumer_generation: Generation,
    /// Units per class, in the order of the classes' creation.
    pub resources: Vec<(ResourceClassName, u64)>,
    /// When the allocations were written.
    pub modified: Timestamp,
}

impl State {
    /// The consumer, if there is a record of it.
    pub fn consumer(&self, consumer: &ConsumerUuid) -> Option<Consumer> {
        let row = self.consumers.row(consumer)?;
        let holding = |(id, amounts): (ProviderId, &[Amount])| {
            let node = self.node_by_id(id);
            let node = node.expect("what a consumer holds is of a provider that is there");
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

    /// The provider's generation and what is held of it, one consumer after the other in the order
    /// of their UUIDs; `None` if there is no such provider.
    pub fn provider_holdings(
        &self,
        provider: &ProviderUuid,
    ) -> Option<(Generation, impl Iterator<Item = ProviderHolding>)> {
        let node = self.node(self.place(provider)?);
        let holding = |consumer: &ConsumerUuid| {
            let row = self.consumers.row(consumer);
            let row = row.expect("a holder is a consumer");
            ProviderHolding {
                consumer: consumer.clone(),
                consumer_generation: row.generation,
                resources: self.named(row.allocations.of(node.id)),
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
