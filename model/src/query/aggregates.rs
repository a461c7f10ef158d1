//! The aggregates of a provider.

use std::collections::BTreeSet;

use crate::state::State;
use crate::types::{AggregateUuid, Generation, ProviderUuid};

/// A provider's aggregates with the provider's generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderAggregates {
    /// The provider's generation.
    pub generation: Generation,
    /// The aggregates.
    pub aggregates: BTreeSet<AggregateUuid>,
}

impl State {
    /// The aggregates of a provider, or `None` if there is no such provider.
    pub fn provider_aggregates(&self, provider: &ProviderUuid) -> Option<ProviderAggregates> {
        let node = self.node(self.place(provider)?);
        Some(ProviderAggregates {
            generation: node.generation,
            aggregates: node.aggregates.as_ref().clone(),
        })
    }
}
