//! Who holds what, asked from either side.

use crate::state::State;
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
    /// Units per class.
    pub resources: Vec<(ResourceClassName, u64)>,
}

/// All that is held of one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderAllocations {
    /// The provider's generation.
    pub generation: Generation,
    /// Per consumer, sorted by its UUID.
    pub consumers: Vec<ProviderHolding>,
}

/// What one consumer holds of the provider asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderHolding {
    /// The consumer.
    pub consumer: ConsumerUuid,
    /// The consumer's generation.
    pub consumer_generation: Generation,
    /// Units per class.
    pub resources: Vec<(ResourceClassName, u64)>,
    /// When the allocations were written.
    pub modified: Timestamp,
}

impl State {
    /// The consumer, if there is a record of it.
    pub fn consumer(&self, consumer: &ConsumerUuid) -> Option<Consumer> {
        let _ = consumer;
        None
    }

    /// All that is held of a provider, or `None` if there is no such provider.
    pub fn provider_allocations(&self, provider: &ProviderUuid) -> Option<ProviderAllocations> {
        let _ = provider;
        None
    }
}
