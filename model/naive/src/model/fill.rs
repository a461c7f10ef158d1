//! Import of rows of another cluster.

use std::sync::Arc;

use placement_model::command::{FillPartition, Filled, FilledConsumer, FilledProvider};
use placement_model::outcome::{ImportConflict, Refusal, Reply};
use placement_model::types::{Inventory, ProviderUuid};

use super::{ApplyResult, Naive, NaiveConsumer, NaiveProvider, refuse_if};

const MOST: u32 = 2_147_483_647;

impl Naive {
    pub(super) fn fill(&mut self, fill: &FillPartition) -> ApplyResult {
        let has = Filled {
            providers: self.providers.len() as u64,
            consumers: self.consumers.len() as u64,
        };
        let expected = fill.after;
        refuse_if(has != expected, || Refusal::PartitionNotEmpty {
            has,
            expected,
        })?;
        for row in &fill.resource_classes {
            if !self.classes.contains_key(&row.name) {
                self.make_class(row.updated_at, &row.name);
            }
            let classes = Arc::make_mut(&mut self.classes);
            classes.get_mut(&row.name).unwrap().made = row.updated_at;
        }
        for row in &fill.traits {
            if !self.traits.contains_key(&row.name) {
                self.make_trait(row.updated_at, &row.name);
            }
            let traits = Arc::make_mut(&mut self.traits);
            traits.get_mut(&row.name).unwrap().made = row.updated_at;
        }
        for new in &fill.providers {
            self.fill_provider(new)?;
        }
        for (child, parent) in &fill.parents {
            self.fill_parent(child, parent)?;
        }
        for new in &fill.consumers {
            self.fill_consumer(new)?;
        }
        Ok(Reply::Done)
    }

    fn fill_provider(&mut self, new: &FilledProvider) -> Result<(), Refusal> {
        let unfit = |why| Refusal::ProviderUnfit(new.uuid, why);
        let is_there = self.providers.contains_key(&new.uuid);
        refuse_if(is_there, || unfit(ImportConflict::Exists))?;
        let is_taken = self.providers.values().any(|other| other.name == new.name);
        refuse_if(is_taken, || unfit(ImportConflict::NameTaken))?;
        if let Some(parent) = &new.parent {
            let is_unknown = !self.providers.contains_key(parent);
            refuse_if(is_unknown, || unfit(ImportConflict::Dangling))?;
        }
        for (class, row) in &new.inventories {
            let is_unknown = !self.classes.contains_key(class);
            refuse_if(is_unknown, || unfit(ImportConflict::Dangling))?;
            let Inventory {
                total,
                reserved,
                min_unit,
                max_unit,
                step_size,
                allocation_ratio,
            } = row.inventory;
            let is_zero = [min_unit, max_unit, step_size].contains(&0);
            let all = [total, reserved, min_unit, max_unit, step_size];
            let is_large = all.into_iter().any(|units| units > MOST);
            let is_endless = allocation_ratio.is_nan() || allocation_ratio.is_infinite();
            refuse_if(is_zero || is_large || is_endless, || {
                unfit(ImportConflict::OutOfRange)
            })?;
        }
        let is_unknown = new
            .traits
            .iter()
            .any(|name| !self.traits.contains_key(name));
        refuse_if(is_unknown, || unfit(ImportConflict::Dangling))?;
        let provider = NaiveProvider {
            order: self.next(),
            name: new.name.clone(),
            generation: new.generation,
            parent: new.parent,
            updated: new.updated_at,
            inventories: new.inventories.clone(),
            traits: new.traits.clone(),
            aggregates: new.aggregates.clone(),
        };
        self.providers.insert(new.uuid, provider);
        Ok(())
    }

    fn fill_parent(&mut self, child: &ProviderUuid, parent: &ProviderUuid) -> Result<(), Refusal> {
        let unfit = |why| Refusal::ProviderUnfit(*child, why);
        let mut both = [child, parent].into_iter();
        let is_unknown = both.any(|uuid| !self.providers.contains_key(uuid));
        refuse_if(is_unknown, || unfit(ImportConflict::Dangling))?;
        if self.providers[child].parent == Some(*parent) {
            return Ok(());
        }
        let is_child = self.providers[child].parent.is_some();
        let is_loop = self.ancestors(parent).contains(child);
        refuse_if(is_child || is_loop, || unfit(ImportConflict::Parent))?;
        self.provider_mut(child).parent = Some(*parent);
        Ok(())
    }

    fn fill_consumer(&mut self, new: &FilledConsumer) -> Result<(), Refusal> {
        let unfit = |why| Refusal::ConsumerUnfit(new.uuid.clone(), why);
        let is_there = self.consumers.contains_key(&new.uuid);
        refuse_if(is_there, || unfit(ImportConflict::Exists))?;
        for (provider, amounts) in &new.allocations {
            for (class, units) in amounts {
                let found = self.providers.get(provider);
                let has = found.is_some_and(|found| found.inventories.contains_key(class));
                refuse_if(!has, || unfit(ImportConflict::Dangling))?;
                let is_possible = *units > 0 && *units <= u64::from(MOST);
                refuse_if(!is_possible, || unfit(ImportConflict::OutOfRange))?;
                let key = (new.uuid.clone(), *provider, class.clone());
                self.allocations.insert(key, *units);
            }
        }
        let consumer = NaiveConsumer {
            hold: new.hold.as_deref().cloned(),
            generation: new.generation,
            project: new.project.clone(),
            user: new.user.clone(),
            consumer_type: new.consumer_type.clone(),
            updated: new.updated_at,
        };
        self.consumers.insert(new.uuid.clone(), consumer);
        Ok(())
    }
}
