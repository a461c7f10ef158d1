//! Resource providers: commands and listings.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::command::{
    CreateProvider, ParentUpdate, ReplaceProviderAggregates, UpdateProvider,
};
use placement_model::outcome::{Provider, Refusal, Reply};
use placement_model::query::resource_providers::ProviderFilter;
use placement_model::query::{NamedProvider, UnknownName};
use placement_model::types::{
    AggregateUuid, Generation, Given, ProviderUuid, Timestamp, TraitName,
};

use super::inventories::{exact_capacity, permits};
use super::{ApplyResult, Naive, NaiveProvider, refuse_if};

impl Naive {
    pub(super) fn create_provider(
        &mut self,
        at: Timestamp,
        create: &CreateProvider,
    ) -> ApplyResult {
        let CreateProvider { uuid, name, parent } = create;
        let given = parent.as_ref().map(ToString::to_string);
        refuse_if(given == Some(uuid.to_string()), || {
            Refusal::ParentLoop(*uuid)
        })?;
        let parent = parent
            .as_ref()
            .map(|given| self.parent(given))
            .transpose()?;
        let is_known = self.providers.contains_key(uuid);
        refuse_if(is_known, || Refusal::DuplicateProviderUuid(*uuid))?;
        let is_taken = self.providers.values().any(|other| other.name == *name);
        refuse_if(is_taken, || Refusal::DuplicateProviderName(name.clone()))?;
        let order = self.next();
        let provider = NaiveProvider {
            order,
            name: name.clone(),
            generation: Generation(0),
            parent,
            updated: at,
            inventories: BTreeMap::new(),
            traits: BTreeSet::new(),
            aggregates: BTreeSet::new(),
        };
        self.providers.insert(*uuid, provider);
        Ok(Reply::Provider(self.provider(uuid).unwrap()))
    }

    pub(super) fn update_provider(
        &mut self,
        at: Timestamp,
        update: &UpdateProvider,
    ) -> ApplyResult {
        let (uuid, name) = (&update.uuid, &update.name);
        self.known(uuid)?;
        let old = self.providers[uuid].parent;
        let new = match &update.parent {
            ParentUpdate::Keep => old,
            ParentUpdate::Clear => None,
            ParentUpdate::Set(given) => Some(self.parent(given)?),
        };
        let is_forbidden = old.is_some() && new != old && !update.may_reparent;
        refuse_if(is_forbidden, || Refusal::ReparentForbidden(*uuid))?;
        let is_loop = new.is_some_and(|parent| self.ancestors(&parent).contains(uuid));
        refuse_if(is_loop, || Refusal::ParentLoop(*uuid))?;
        let mut others = self.providers.iter().filter(|(other, _)| *other != uuid);
        let is_taken = others.any(|(_, other)| other.name == *name);
        refuse_if(is_taken, || Refusal::DuplicateProviderName(name.clone()))?;
        let root = self.root(uuid);
        let provider = self.provider_mut(uuid);
        if provider.name != *name || new != old {
            provider.updated = at;
        }
        provider.name = name.clone();
        provider.parent = new;
        if self.root(uuid) != root {
            let all: Vec<_> = self.providers.keys().copied().collect();
            for other in all {
                if self.ancestors(&other).contains(uuid) {
                    self.provider_mut(&other).updated = at;
                }
            }
        }
        Ok(Reply::Provider(self.provider(uuid).unwrap()))
    }

    pub(super) fn delete_provider(&mut self, uuid: &ProviderUuid) -> ApplyResult {
        self.known(uuid)?;
        let mut others = self.providers.values();
        let has_children = others.any(|other| other.parent == Some(*uuid));
        refuse_if(has_children, || Refusal::ProviderHasChildren(*uuid))?;
        let mut held = self.allocations.keys();
        let in_use = held.any(|(_, provider, _)| provider == uuid);
        refuse_if(in_use, || Refusal::ProviderInUse(*uuid))?;
        self.providers.remove(uuid);
        Ok(Reply::Done)
    }

    pub(super) fn replace_aggregates(
        &mut self,
        at: Timestamp,
        replace: &ReplaceProviderAggregates,
    ) -> ApplyResult {
        let provider = &replace.provider;
        self.known(provider)?;
        if let Some(generation) = replace.generation {
            self.same_generation(provider, generation)?;
            self.bump(at, provider);
        }
        self.provider_mut(provider).aggregates = replace.aggregates.clone();
        self.written(at, provider)
    }

    pub(super) fn provider_mut(&mut self, uuid: &ProviderUuid) -> &mut NaiveProvider {
        self.providers.get_mut(uuid).unwrap()
    }

    pub(super) fn known(&self, uuid: &ProviderUuid) -> Result<(), Refusal> {
        let is_unknown = !self.providers.contains_key(uuid);
        refuse_if(is_unknown, || Refusal::ProviderNotFound(*uuid))
    }

    pub(super) fn given(&self, given: &Given<ProviderUuid>) -> Option<ProviderUuid> {
        self.providers
            .keys()
            .find(|uuid| uuid.to_string() == given.to_string())
            .copied()
    }

    fn parent(&self, given: &Given<ProviderUuid>) -> Result<ProviderUuid, Refusal> {
        let found = self.given(given);
        found.ok_or_else(|| Refusal::ParentNotFound(given.clone()))
    }

    pub(super) fn same_generation(
        &self,
        provider: &ProviderUuid,
        given: Generation,
    ) -> Result<(), Refusal> {
        let actual = self.providers[provider].generation;
        refuse_if(given != actual, || Refusal::ProviderGenerationConflict {
            provider: *provider,
            given,
            actual,
        })
    }

    pub(super) fn bump(&mut self, at: Timestamp, uuid: &ProviderUuid) {
        let provider = self.provider_mut(uuid);
        provider.generation.0 += 1;
        provider.updated = at;
    }

    pub(super) fn written(&self, at: Timestamp, uuid: &ProviderUuid) -> ApplyResult {
        Ok(Reply::ProviderWritten {
            generation: self.providers[uuid].generation,
            at,
        })
    }

    pub(super) fn root(&self, uuid: &ProviderUuid) -> ProviderUuid {
        *self
            .ancestors(uuid)
            .last()
            .expect("it contains the provider")
    }

    /// The provider and all its ancestors, up to the root. An injected bug may make a circle.
    pub(super) fn ancestors(&self, uuid: &ProviderUuid) -> Vec<ProviderUuid> {
        let mut line = vec![*uuid];
        while let Some(parent) = self.providers[line.last().unwrap()].parent
            && !line.contains(&parent)
        {
            line.push(parent);
        }
        line
    }

    /// `GET /resource_providers/{uuid}`, without links.
    pub fn provider(&self, uuid: &ProviderUuid) -> Option<Provider> {
        let provider = self.providers.get(uuid)?;
        Some(Provider {
            uuid: *uuid,
            name: provider.name.clone(),
            generation: provider.generation,
            parent: provider.parent,
            root: self.root(uuid),
            modified: provider.updated,
        })
    }

    /// `GET …/aggregates` of a provider.
    pub fn provider_aggregates(
        &self,
        uuid: &ProviderUuid,
    ) -> Option<(Generation, BTreeSet<AggregateUuid>)> {
        let provider = self.providers.get(uuid)?;
        Some((provider.generation, provider.aggregates.clone()))
    }

    pub(super) fn named_provider(&self, uuid: &ProviderUuid) -> NamedProvider {
        NamedProvider {
            uuid: *uuid,
            name: self.providers[uuid].name.clone(),
        }
    }

    /// `GET /resource_providers` as upstream evaluates it: one filter after the other, ending at
    /// the first filter that no provider passes.
    pub fn providers(&self, filter: &ProviderFilter) -> Result<Vec<Provider>, UnknownName> {
        let mut left: Vec<_> = self.providers.iter().collect();
        left.sort_by_key(|(_, provider)| provider.order);
        if let Some(name) = filter.name.as_ref().filter(|name| !name.is_empty()) {
            left.retain(|(_, provider)| provider.name.as_str() == name);
        }
        if let Some(given) = &filter.uuid {
            left.retain(|(other, _)| other.to_string() == given.to_string());
        }
        if let Some(given) = &filter.in_tree {
            let Some(uuid) = self.given(given) else {
                return Ok(Vec::new());
            };
            left.retain(|(other, _)| self.root(other) == self.root(&uuid));
        }
        let unknown = |names: &BTreeSet<Given<TraitName>>| -> Result<(), UnknownName> {
            let unknown: Vec<_> = names
                .iter()
                .filter(|name| !self.has_trait(name))
                .cloned()
                .collect();
            if unknown.is_empty() {
                Ok(())
            } else {
                Err(UnknownName::Traits(unknown))
            }
        };
        for any in &filter.required {
            unknown(any)?;
        }
        let has = |provider: &NaiveProvider, given: &Given<TraitName>| {
            given.valid().is_some_and(|t| provider.traits.contains(t))
        };
        let has_required = |provider: &NaiveProvider| {
            filter
                .required
                .iter()
                .all(|any| any.iter().any(|t| has(provider, t)))
        };
        if !filter.required.is_empty() && !self.providers.values().any(has_required) {
            return Ok(Vec::new());
        }
        left.retain(|(_, provider)| has_required(provider));
        unknown(&filter.forbidden)?;
        left.retain(|(_, p)| !filter.forbidden.iter().any(|t| has(p, t)));
        let is_member = |provider: &NaiveProvider| {
            filter
                .member_of
                .iter()
                .all(|any| any.iter().any(|a| provider.aggregates.contains(a)))
        };
        if !filter.member_of.is_empty() && !self.providers.values().any(is_member) {
            return Ok(Vec::new());
        }
        left.retain(|(_, provider)| is_member(provider));
        left.retain(|(_, p)| {
            !filter
                .not_member_of
                .iter()
                .any(|a| p.aggregates.contains(a))
        });
        for (class, amount) in &filter.resources {
            let Ok(class) = &self.named_class(class) else {
                return Err(UnknownName::ResourceClass(class.clone()));
            };
            left.retain(|(uuid, provider)| {
                let row = provider.inventories.get(class);
                row.is_some_and(|row| {
                    let sum = self.used(uuid, class) + amount;
                    permits(&row.inventory, *amount) && sum as f64 <= exact_capacity(&row.inventory)
                })
            });
        }
        let left = left.into_iter();
        Ok(left.map(|(uuid, _)| self.provider(uuid).unwrap()).collect())
    }
}
