//! Traits, and the traits of a provider.

use crate::state::State;
use crate::types::{Generation, ProviderUuid, Timestamp, TraitName};

/// A provider's traits, sorted by name, with the provider's generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderTraits {
    /// The provider's generation.
    pub generation: Generation,
    /// Each trait with the time of its creation.
    pub traits: Vec<(TraitName, Timestamp)>,
}

impl State {
    /// When the trait was made, if it exists.
    pub fn trait_(&self, name: &TraitName) -> Option<Timestamp> {
        let _ = name;
        None
    }

    /// All traits with the time of their creation, sorted by name; with `associated`, only those
    /// that some provider has (`true`) or no provider has (`false`).
    pub fn traits(&self, associated: Option<bool>) -> Vec<(TraitName, Timestamp)> {
        let _ = associated;
        Vec::new()
    }

    /// The traits of a provider, or `None` if there is no such provider.
    pub fn provider_traits(&self, provider: &ProviderUuid) -> Option<ProviderTraits> {
        let _ = provider;
        None
    }
}
