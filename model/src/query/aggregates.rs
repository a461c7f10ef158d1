//! The aggregates of a provider.

use std::collections::BTreeSet;

use crate::state::State;
use crate::types::{AggregateUuid, Generation, ProviderUuid};

impl State {
    /// The aggregates of a provider, with the provider's generation.
    pub fn provider_aggregates(
        &self,
        provider: &ProviderUuid,
    ) -> Option<(Generation, BTreeSet<AggregateUuid>)> {
        self.read_provider(provider, |node| node.aggregates.as_ref().clone())
    }
}
