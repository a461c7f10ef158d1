//! Traits, and the traits of a provider.

use crate::state::State;
use crate::types::{Generation, ProviderUuid, Timestamp, TraitName};

impl State {
    /// The creation time of a trait, or `None` if the trait does not exist.
    pub fn trait_(&self, name: &TraitName) -> Option<Timestamp> {
        Some(self.trait_row(self.trait_id(name)?).updated_at)
    }

    /// All traits with their creation times, sorted by name. `associated` limits them to traits
    /// that some provider has (`true`) or no provider has (`false`).
    pub fn traits(&self, associated: Option<bool>) -> Vec<(TraitName, Timestamp)> {
        self.traits
            .by_name()
            .filter(|(id, _)| associated.is_none_or(|wanted| wanted == (self.traits.uses(*id) > 0)))
            .map(|(_, row)| (row.name.clone(), row.updated_at))
            .collect()
    }

    /// The generation of a provider and its traits with their creation times, sorted by name.
    pub fn provider_traits(
        &self,
        provider: &ProviderUuid,
    ) -> Option<(Generation, Vec<(TraitName, Timestamp)>)> {
        self.read_provider(provider, |node| {
            let rows = node.traits.iter().map(|id| self.trait_row(*id));
            let mut traits: Vec<_> = rows.map(|row| (row.name.clone(), row.updated_at)).collect();
            traits.sort();
            traits
        })
    }
}
