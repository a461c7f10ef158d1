//! Resource classes: commands and listings.

use std::sync::Arc;

use placement_model::outcome::{Refusal, Reply};
use placement_model::types::{Given, ResourceClassName, Timestamp};

use super::names::named_reply;
use super::{ApplyResult, Naive, Named, refuse_if};

impl Naive {
    pub(super) fn create_class(&mut self, at: Timestamp, name: &ResourceClassName) -> ApplyResult {
        let exists = self.classes.contains_key(name);
        refuse_if(exists, || Refusal::ResourceClassExists(name.clone()))?;
        refuse_if(!name.is_custom(), || {
            Refusal::ResourceClassStandardUpdate(name.clone())
        })?;
        self.make_class(at, name);
        named_reply(true, at)
    }

    pub(super) fn ensure_class(&mut self, at: Timestamp, name: &ResourceClassName) -> ApplyResult {
        if let Some(named) = self.classes.get(name) {
            return named_reply(false, named.made);
        }
        refuse_if(!name.is_custom(), || {
            Refusal::ResourceClassStandardUpdate(name.clone())
        })?;
        self.make_class(at, name);
        named_reply(true, at)
    }

    pub(super) fn rename(
        &mut self,
        at: Timestamp,
        name: &ResourceClassName,
        new_name: &ResourceClassName,
    ) -> ApplyResult {
        self.known_class(name)?;
        refuse_if(!name.is_custom(), || {
            Refusal::ResourceClassStandardUpdate(name.clone())
        })?;
        let is_taken = name != new_name && self.classes.contains_key(new_name);
        refuse_if(is_taken, || Refusal::ResourceClassExists(new_name.clone()))?;
        refuse_if(!new_name.is_custom(), || {
            Refusal::ResourceClassStandardUpdate(new_name.clone())
        })?;
        let classes = Arc::make_mut(&mut self.classes);
        let order = classes.remove(name).unwrap().order;
        classes.insert(new_name.clone(), Named { order, made: at });
        for provider in self.providers.values_mut() {
            if let Some(row) = provider.inventories.remove(name) {
                provider.inventories.insert(new_name.clone(), row);
            }
        }
        let old = std::mem::take(&mut self.allocations);
        for ((consumer, provider, class), amount) in old {
            let renamed = class == *name;
            let class = if renamed { new_name.clone() } else { class };
            self.allocations.insert((consumer, provider, class), amount);
        }
        named_reply(false, at)
    }

    pub(super) fn delete_class(&mut self, name: &ResourceClassName) -> ApplyResult {
        self.known_class(name)?;
        refuse_if(!name.is_custom(), || {
            Refusal::ResourceClassStandardDelete(name.clone())
        })?;
        let mut providers = self.providers.values();
        let in_use = providers.any(|provider| provider.inventories.contains_key(name));
        refuse_if(in_use, || Refusal::ResourceClassInUse(name.clone()))?;
        Arc::make_mut(&mut self.classes).remove(name);
        Ok(Reply::Done)
    }

    pub(super) fn make_class(&mut self, at: Timestamp, name: &ResourceClassName) {
        let order = self.next();
        Arc::make_mut(&mut self.classes).insert(name.clone(), Named { order, made: at });
    }

    fn known_class(&self, name: &ResourceClassName) -> Result<(), Refusal> {
        let is_unknown = !self.classes.contains_key(name);
        refuse_if(is_unknown, || {
            Refusal::ResourceClassNotFound(Given::Valid(name.clone()))
        })
    }

    pub(super) fn named_class(
        &self,
        given: &Given<ResourceClassName>,
    ) -> Result<ResourceClassName, Refusal> {
        match given {
            Given::Valid(name) if self.classes.contains_key(name) => Ok(name.clone()),
            _ => Err(Refusal::ResourceClassNotFound(given.clone())),
        }
    }

    pub(super) fn in_order<'a, T>(
        &'a self,
        classes: impl IntoIterator<Item = (&'a ResourceClassName, T)>,
    ) -> Vec<(ResourceClassName, T)> {
        let mut list: Vec<_> = classes
            .into_iter()
            .map(|(name, t)| (name.clone(), t))
            .collect();
        list.sort_by_key(|(name, _)| self.classes[name].order);
        list
    }

    /// `GET /resource_classes`, standard classes first.
    pub fn resource_classes(&self) -> Vec<(ResourceClassName, Timestamp)> {
        let mut all: Vec<_> = self.classes.iter().collect();
        all.sort_by_key(|(name, named)| (name.is_custom(), named.order));
        all.into_iter()
            .map(|(name, named)| (name.clone(), named.made))
            .collect()
    }

    /// Whether the resource class exists.
    pub fn has_resource_class(&self, name: &ResourceClassName) -> bool {
        self.classes.contains_key(name)
    }
}
