//! Generations of providers and of consumers only rise, as long as these exist.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::Command;
use placement_model::command::ReplaceAllocations;
use placement_model::types::{ConsumerUuid, Generation, ProviderUuid};

use super::{Applied, Invariant, Providers};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct GenerationsRise {
    known: Providers,
    consumers: BTreeSet<ConsumerUuid>,
    /// Per node, as a node may be behind the others or begin again after a crash.
    last: BTreeMap<u64, Last>,
}

#[derive(Debug, Default)]
struct Last {
    index: u64,
    providers: BTreeMap<ProviderUuid, Generation>,
    consumers: BTreeMap<ConsumerUuid, Generation>,
}

impl Invariant for GenerationsRise {
    fn name(&self) -> &'static str {
        "generations rise"
    }

    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        let mut now = Last {
            index: applied.index,
            ..Last::default()
        };
        for uuid in &self.known.0 {
            if let Some(provider) = applied.before.provider(uuid) {
                now.providers.insert(*uuid, provider.generation);
            }
        }
        for uuid in &self.consumers {
            if let Some(consumer) = applied.before.consumer(uuid) {
                now.consumers.insert(uuid.clone(), consumer.generation);
            }
        }
        self.learn(&applied.stamped.command);
        let before = self.last.insert(applied.node, now).unwrap_or_default();
        let now = &self.last[&applied.node];
        if before.index + 1 != now.index {
            // A snapshot, a blank entry or a crash lies between; a consumer may have been
            // released and made anew.
            return fallen(&before.providers, &now.providers, before.index < now.index);
        }
        fallen(&before.providers, &now.providers, true)?;
        fallen(&before.consumers, &now.consumers, true)
    }
}

impl GenerationsRise {
    fn learn(&mut self, command: &Command) {
        self.known.learn(command);
        if let Command::ReplaceAllocations(ReplaceAllocations { consumers }) = command {
            self.consumers
                .extend(consumers.iter().map(|one| one.consumer.clone()));
        }
    }
}

fn fallen<K: Ord + std::fmt::Debug>(
    before: &BTreeMap<K, Generation>,
    now: &BTreeMap<K, Generation>,
    forwards: bool,
) -> Result<(), String> {
    for (key, generation) in now {
        if forwards && before.get(key).is_some_and(|before| before > generation) {
            return Err(format!(
                "{key:?} fell from {:?} to {generation:?}",
                before[key]
            ));
        }
    }
    Ok(())
}
