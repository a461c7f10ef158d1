//! Allocations: claims, reshapes, and the allocations of a provider.

use std::collections::BTreeSet;

use placement_model::command::{
    ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, ProviderAmounts,
    ReshapedInventories,
};
use placement_model::outcome::{Outcome, Refusal, Reply};
use placement_model::query::allocations::ProviderHolding;
use placement_model::types::{
    ConsumerUuid, Generation, Given, ProviderUuid, ResourceClassName, Timestamp,
};

use super::holds::HoldUpdate;
use super::inventories::{exact_capacity, permits};
use super::{ApplyResult, Naive, NaiveConsumer, refuse_if};

impl Naive {
    /// Creates new consumers first, in a separate step. They remain if a provider is unknown.
    pub(super) fn write_allocations(
        &mut self,
        at: Timestamp,
        inventories: &[ReshapedInventories],
        consumers: &[ConsumerAllocations],
        update: &HoldUpdate,
    ) -> Outcome {
        for reshaped in inventories {
            let Some(provider) = self.given(&reshaped.provider) else {
                let given = reshaped.provider.clone();
                return Outcome::Refused(Refusal::ReshapeProviderNotFound(given));
            };
            if let Err(refusal) = self.same_generation(&provider, reshaped.generation) {
                return Outcome::Refused(refusal);
            }
        }
        let mut made = self.clone();
        for wanted in consumers {
            if let Err(refusal) = made.ensure_consumer(at, wanted, self) {
                return Outcome::Refused(refusal);
            }
        }
        for asked in consumers.iter().flat_map(|wanted| &wanted.allocations) {
            if self.given(&asked.provider).is_none() {
                *self = made;
                let given = asked.provider.clone();
                return Outcome::Refused(Refusal::AllocationProviderNotFound(given));
            }
        }
        match made.reshape(at, inventories, consumers, update) {
            Ok(()) => {
                *self = made;
                Outcome::Done(Reply::Done)
            }
            Err(refusal) => Outcome::Refused(refusal),
        }
    }

    pub(super) fn check_generation(
        &self,
        consumer: &ConsumerUuid,
        expected: ConsumerGeneration,
    ) -> Result<(), Refusal> {
        let actual = self.consumers.get(consumer).map(|row| row.generation);
        let given = match expected {
            ConsumerGeneration::Unchecked => actual,
            ConsumerGeneration::New => None,
            ConsumerGeneration::Expect(generation) => Some(generation),
        };
        refuse_if(given != actual, || Refusal::ConsumerGenerationConflict {
            consumer: consumer.clone(),
            given,
            actual,
        })
    }

    pub(super) fn ensure_consumer(
        &mut self,
        at: Timestamp,
        wanted: &ConsumerAllocations,
        before: &Naive,
    ) -> Result<(), Refusal> {
        before.check_generation(&wanted.consumer, wanted.generation)?;
        if !before.consumers.contains_key(&wanted.consumer) {
            let consumer = NaiveConsumer {
                generation: Generation(0),
                project: wanted.project.clone(),
                user: wanted.user.clone(),
                consumer_type: match &wanted.consumer_type {
                    ConsumerTypeUpdate::Keep => None,
                    ConsumerTypeUpdate::Set(name) => Some(name.clone()),
                },
                updated: at,
                hold: None,
            };
            self.consumers.insert(wanted.consumer.clone(), consumer);
        }
        Ok(())
    }

    pub(super) fn reshape(
        &mut self,
        at: Timestamp,
        inventories: &[ReshapedInventories],
        consumers: &[ConsumerAllocations],
        update: &HoldUpdate,
    ) -> Result<(), Refusal> {
        for wanted in consumers {
            let consumer = self.consumers.get_mut(&wanted.consumer).unwrap();
            consumer.project = wanted.project.clone();
            consumer.user = wanted.user.clone();
            if let ConsumerTypeUpdate::Set(name) = &wanted.consumer_type {
                consumer.consumer_type = Some(name.clone());
            }
        }
        for reshaped in inventories {
            let provider = self.given(&reshaped.provider).unwrap();
            for (class, inventory) in &reshaped.inventories {
                let class = self.named_class(class)?;
                self.put_inventory(at, &provider, &class, inventory);
            }
            if !reshaped.inventories.is_empty() {
                self.bump(at, &provider);
            }
        }
        self.replace_allocations(at, consumers, update)?;
        for reshaped in inventories {
            let provider = self.given(&reshaped.provider).unwrap();
            self.set_inventories(at, &provider, &reshaped.inventories)?;
        }
        Ok(())
    }

    fn replace_allocations(
        &mut self,
        at: Timestamp,
        consumers: &[ConsumerAllocations],
        update: &HoldUpdate,
    ) -> Result<(), Refusal> {
        let mut lines = Vec::new();
        for wanted in consumers {
            for ProviderAmounts {
                provider,
                resources,
            } in &wanted.allocations
            {
                let provider = self.given(provider).unwrap();
                for (class, amount) in resources {
                    lines.push((wanted.consumer.clone(), provider, class.clone(), *amount));
                }
            }
            if wanted.allocations.is_empty() {
                let held = self
                    .allocations
                    .keys()
                    .filter(|(c, _, _)| *c == wanted.consumer);
                let emptied =
                    held.map(|(c, p, class)| (c.clone(), *p, Given::Valid(class.clone()), 0));
                lines.extend(emptied.collect::<Vec<_>>());
            }
        }
        let known = |(consumer, provider, class, amount)| {
            Ok((consumer, provider, self.named_class(&class)?, amount))
        };
        let lines: Vec<_> = lines
            .into_iter()
            .map(known)
            .collect::<Result<_, Refusal>>()?;
        let before = self.clone();
        for (consumer, _, _, _) in &lines {
            self.allocations
                .retain(|(holder, _, _), _| holder != consumer);
        }
        self.end_holds(&update.ended);
        self.check(&before, &lines)?;
        let mut providers = BTreeSet::new();
        let mut named = BTreeSet::new();
        for (consumer, provider, class, amount) in lines {
            providers.insert(provider);
            named.insert(consumer.clone());
            if amount > 0 {
                self.allocations.insert((consumer, provider, class), amount);
            }
        }
        for provider in providers {
            self.bump(at, &provider);
        }
        for consumer in named {
            if self.holds_something(&consumer) {
                let row = self.consumers.get_mut(&consumer).unwrap();
                row.generation.0 += 1;
                row.updated = at;
                if let Some(hold) = &update.hold {
                    row.hold = hold.clone();
                }
            } else {
                self.consumers.remove(&consumer);
            }
        }
        Ok(())
    }

    fn check(
        &self,
        before: &Naive,
        lines: &[(ConsumerUuid, ProviderUuid, ResourceClassName, u64)],
    ) -> Result<(), Refusal> {
        let classes: BTreeSet<_> = lines.iter().map(|(_, _, class, _)| class.clone()).collect();
        let lacks = |provider: &ProviderUuid| {
            !self.providers[provider]
                .inventories
                .keys()
                .any(|class| classes.contains(class))
        };
        let providers: BTreeSet<_> = lines
            .iter()
            .map(|(_, provider, _, _)| *provider)
            .filter(lacks)
            .collect();
        if !providers.is_empty() {
            let mut resource_classes: Vec<_> = classes.into_iter().collect();
            resource_classes.sort_by_key(|class| self.classes[class].order);
            let providers = providers.into_iter().collect();
            return Err(Refusal::AllocationWithoutInventory(
                resource_classes,
                providers,
            ));
        }
        for (index, (_, provider, class, amount)) in lines.iter().enumerate() {
            if *amount == 0 {
                continue;
            }
            let Some(row) = self.providers[provider].inventories.get(class) else {
                let (classes, providers) = (vec![class.clone()], vec![*provider]);
                return Err(Refusal::AllocationWithoutInventory(classes, providers));
            };
            let i = row.inventory;
            let (provider, resource_class) = (*provider, class.clone());
            refuse_if(!permits(&i, *amount), || {
                Refusal::AllocationConstraints(provider, resource_class.clone())
            })?;
            let so_far = lines[..=index]
                .iter()
                .filter(|(_, p, c, _)| *p == provider && c == class);
            let sum = self.used(&provider, class) + so_far.map(|line| line.3).sum::<u64>();
            let used_before = before.used(&provider, class);
            let is_worse = used_before == 0 || sum > used_before;
            let is_full = sum as f64 > exact_capacity(&i) && is_worse;
            refuse_if(is_full, || {
                Refusal::AllocationCapacity(provider, resource_class)
            })?;
        }
        Ok(())
    }

    pub(super) fn delete_allocations(&mut self, consumer: &ConsumerUuid) -> ApplyResult {
        let has_none = !self.holds_something(consumer);
        refuse_if(has_none, || {
            Refusal::ConsumerHasNoAllocations(consumer.clone())
        })?;
        self.allocations
            .retain(|(holder, _, _), _| holder != consumer);
        self.consumers.remove(consumer);
        Ok(Reply::Done)
    }

    fn holds_something(&self, consumer: &ConsumerUuid) -> bool {
        let mut held = self.allocations.keys();
        held.any(|(holder, _, _)| holder == consumer)
    }

    /// The allocated units of an inventory.
    pub fn used(&self, provider: &ProviderUuid, class: &ResourceClassName) -> u64 {
        let of = |(_, p, c): &(ConsumerUuid, ProviderUuid, ResourceClassName)| {
            p == provider && c == class
        };
        self.allocations
            .iter()
            .filter(|(key, _)| of(key))
            .map(|(_, amount)| amount)
            .sum()
    }

    pub(super) fn held(
        &self,
        consumer: &ConsumerUuid,
        provider: &ProviderUuid,
    ) -> Vec<(ResourceClassName, u64)> {
        let mine = self
            .allocations
            .iter()
            .filter(|((c, p, _), _)| c == consumer && p == provider);
        self.in_order(mine.map(|((_, _, class), amount)| (class, *amount)))
    }

    /// `GET …/allocations` of a provider.
    pub fn provider_holdings(
        &self,
        uuid: &ProviderUuid,
    ) -> Option<(Generation, Vec<ProviderHolding>)> {
        let generation = self.providers.get(uuid)?.generation;
        let holding = |(name, consumer): (&ConsumerUuid, &NaiveConsumer)| ProviderHolding {
            consumer: name.clone(),
            consumer_generation: consumer.generation,
            resources: self.held(name, uuid),
            modified: consumer.updated,
        };
        let holdings = self
            .consumers
            .iter()
            .map(holding)
            .filter(|holding| !holding.resources.is_empty());
        Some((generation, holdings.collect()))
    }
}
