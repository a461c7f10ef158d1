//! Generations of providers and consumers never fall while these exist, and a provider's generation
//! rises whenever its inventories change (Placement: the generation guards against lost updates).

use std::collections::{BTreeMap, BTreeSet};

use placement_model::command::{Claim, ReplaceAllocations};
use placement_model::state::change::RowKey;
use placement_model::types::{ConsumerUuid, Generation, PartitionId, ProviderUuid};
use placement_model::{Change, Command};

use super::{Applied, Invariant};

/// Name of the invariant in violations.
pub const NAME: &str = "generations rise";

/// Compares the generations before and after each command.
#[derive(Debug, Default)]
pub struct GenerationsRise {
    consumers: BTreeSet<ConsumerUuid>,
    /// Generations by node and partition, as a node may lag behind or start again after a crash.
    last: BTreeMap<(u64, PartitionId), LastGenerations>,
    /// The last index that each node applied.
    applied: BTreeMap<u64, u64>,
}

#[derive(Debug, Default)]
struct LastGenerations {
    providers: BTreeMap<ProviderUuid, Generation>,
    consumers: BTreeMap<ConsumerUuid, Generation>,
}

impl Invariant for GenerationsRise {
    fn name(&self) -> &'static str {
        NAME
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        raised(applied)?;
        self.learn(&applied.stamped.command);
        let mut now = LastGenerations::default();
        let nodes = applied.after.trees().flat_map(|(_, tree)| &tree.nodes);
        for node in nodes {
            now.providers.insert(node.uuid, node.generation);
        }
        for uuid in &self.consumers {
            if let Some(consumer) = applied.after.consumer(uuid) {
                now.consumers.insert(uuid.clone(), consumer.generation);
            }
        }
        let (node, index) = (applied.node, applied.index);
        if self.applied.insert(node, index) != index.checked_sub(1) {
            // A snapshot, a blank entry or a crash came in between. A provider may have been
            // deleted and created again, a consumer released.
            self.last.retain(|(one, _), _| *one != node);
        }
        for change in applied.changes {
            if let Change::PutPartition(partition, _) = change {
                self.last.remove(&(node, *partition));
            }
        }
        let place = (node, applied.partition);
        let before = self.last.insert(place, now);
        let (Some(before), now) = (before, &self.last[&place]) else {
            return Ok(());
        };
        fallen(&before.providers, &now.providers)
            .and_then(|()| fallen(&before.consumers, &now.consumers))
            .map_err(|wrong| format!("{wrong} by {:?}", applied.stamped))
    }
}

impl GenerationsRise {
    fn learn(&mut self, command: &Command) {
        match command {
            Command::ReplaceAllocations(ReplaceAllocations { consumers }) => {
                let consumers = consumers.iter().map(|one| one.consumer.clone());
                self.consumers.extend(consumers);
            }
            Command::Claim(Claim { claimants, .. }) => {
                let consumers = claimants.iter().map(|one| one.consumer.clone());
                self.consumers.extend(consumers);
            }
            _ => {}
        }
    }
}

/// Checks that the generation of each provider whose inventories change rises.
fn raised(applied: &Applied<'_>) -> Result<(), String> {
    for change in applied.changes {
        let RowKey::Inventory(id, _) = change.key() else {
            continue;
        };
        let (before, after) = (applied.before.node_by_id(id), applied.after.node_by_id(id));
        if let (Some(before), Some(after)) = (before, after)
            && before.generation >= after.generation
        {
            return Err(format!(
                "the inventories of {} changed, but its generation is still {:?}",
                after.uuid, after.generation
            ));
        }
    }
    Ok(())
}

fn fallen<K: Ord + std::fmt::Debug>(
    before: &BTreeMap<K, Generation>,
    now: &BTreeMap<K, Generation>,
) -> Result<(), String> {
    for (key, generation) in now {
        if before.get(key).is_some_and(|before| before > generation) {
            return Err(format!(
                "{key:?} fell from {:?} to {generation:?}",
                before[key]
            ));
        }
    }
    Ok(())
}
