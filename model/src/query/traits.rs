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
        Some(self.trait_row(self.trait_id(name)?).updated_at)
    }

    /// All traits with the time of their creation, sorted by name; with `associated`, only those
    /// that some provider has (`true`) or no provider has (`false`).
    pub fn traits(&self, associated: Option<bool>) -> Vec<(TraitName, Timestamp)> {
        self.traits
            .by_name()
            .filter(|(id, _)| associated.is_none_or(|wanted| wanted == (self.traits.uses(*id) > 0)))
            .map(|(_, row)| (row.name.clone(), row.updated_at))
            .collect()
    }

    /// The traits of a provider, or `None` if there is no such provider.
    pub fn provider_traits(&self, provider: &ProviderUuid) -> Option<ProviderTraits> {
        let node = self.node(self.place(provider)?);
        let rows = node.traits.iter().map(|id| self.trait_row(*id));
        let mut traits: Vec<_> = rows.map(|row| (row.name.clone(), row.updated_at)).collect();
        traits.sort();
        Some(ProviderTraits {
            generation: node.generation,
            traits,
        })
    }
}
