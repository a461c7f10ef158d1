//! Traits, and the traits of a provider.

use crate::state::State;
use crate::types::{Generation, ProviderUuid, Timestamp, TraitName};

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

    /// The traits of a provider, sorted by name, each with the time of its creation; and the
    /// provider's generation.
    pub fn provider_traits(
        &self,
        provider: &ProviderUuid,
    ) -> Option<(Generation, Vec<(TraitName, Timestamp)>)> {
        self.of_provider(provider, |node| {
            let rows = node.traits.iter().map(|id| self.trait_row(*id));
            let mut traits: Vec<_> = rows.map(|row| (row.name.clone(), row.updated_at)).collect();
            traits.sort();
            traits
        })
    }
}
