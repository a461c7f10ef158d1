//! Traits, and the traits of a provider: commands and listings.

use std::collections::BTreeSet;
use std::sync::Arc;

use placement_model::command::ReplaceProviderTraits;
use placement_model::outcome::{Refusal, Reply};
use placement_model::types::{Generation, Given, ProviderUuid, Timestamp, TraitName};

use super::names::named_reply;
use super::{ApplyResult, Naive, Named, refuse_if};

impl Naive {
    pub(super) fn ensure_trait(&mut self, at: Timestamp, name: &TraitName) -> ApplyResult {
        if let Some(named) = self.traits.get(name) {
            return named_reply(false, named.made);
        }
        refuse_if(!name.is_custom(), || Refusal::TraitStandard(name.clone()))?;
        self.make_trait(at, name);
        named_reply(true, at)
    }

    pub(super) fn delete_trait(&mut self, name: &TraitName) -> ApplyResult {
        let is_unknown = !self.traits.contains_key(name);
        refuse_if(is_unknown, || {
            Refusal::TraitsNotFound(vec![Given::Valid(name.clone())])
        })?;
        refuse_if(!name.is_custom(), || Refusal::TraitStandard(name.clone()))?;
        let mut providers = self.providers.values();
        let in_use = providers.any(|provider| provider.traits.contains(name));
        refuse_if(in_use, || Refusal::TraitInUse(name.clone()))?;
        Arc::make_mut(&mut self.traits).remove(name);
        Ok(Reply::Done)
    }

    pub(super) fn make_trait(&mut self, at: Timestamp, name: &TraitName) {
        let order = self.next();
        Arc::make_mut(&mut self.traits).insert(name.clone(), Named { order, made: at });
    }

    pub(super) fn has_trait(&self, given: &Given<TraitName>) -> bool {
        matches!(given, Given::Valid(name) if self.traits.contains_key(name))
    }

    pub(super) fn replace_traits(
        &mut self,
        at: Timestamp,
        replace: &ReplaceProviderTraits,
    ) -> ApplyResult {
        self.known(&replace.provider)?;
        self.same_generation(&replace.provider, replace.generation)?;
        let unknown: Vec<_> = replace
            .traits
            .iter()
            .filter(|name| !self.has_trait(name))
            .cloned()
            .collect();
        refuse_if(!unknown.is_empty(), || Refusal::TraitsNotFound(unknown))?;
        let traits = replace.traits.iter().filter_map(Given::valid).cloned();
        self.set_traits(at, &replace.provider, traits.collect())
    }

    pub(super) fn delete_traits(&mut self, at: Timestamp, provider: &ProviderUuid) -> ApplyResult {
        self.known(provider)?;
        self.set_traits(at, provider, BTreeSet::new())
    }

    fn set_traits(
        &mut self,
        at: Timestamp,
        provider: &ProviderUuid,
        traits: BTreeSet<TraitName>,
    ) -> ApplyResult {
        if self.providers[provider].traits != traits {
            self.provider_mut(provider).traits = traits;
            self.bump(at, provider);
        }
        self.written(at, provider)
    }

    /// `GET …/traits` of a provider.
    pub fn provider_traits(
        &self,
        uuid: &ProviderUuid,
    ) -> Option<(Generation, Vec<(TraitName, Timestamp)>)> {
        let provider = self.providers.get(uuid)?;
        let made = |name: &TraitName| (name.clone(), self.traits[name].made);
        let traits = provider.traits.iter().map(made);
        Some((provider.generation, traits.collect()))
    }

    /// `GET /traits`. With `associated`, only traits that some provider has (true) or no provider
    /// has (false).
    pub fn traits(&self, associated: Option<bool>) -> Vec<(TraitName, Timestamp)> {
        let has = |name: &TraitName| self.providers.values().any(|p| p.traits.contains(name));
        let wanted = self
            .traits
            .iter()
            .filter(|(name, _)| associated.is_none_or(|w| w == has(name)));
        wanted
            .map(|(name, named)| (name.clone(), named.made))
            .collect()
    }

    /// Whether the trait exists.
    pub fn has_trait_named(&self, name: &TraitName) -> bool {
        self.traits.contains_key(name)
    }
}
