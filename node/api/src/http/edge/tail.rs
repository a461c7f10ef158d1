//! What was changed of late in one partition, read from the ledger once for all streams of its
//! events.
//!
//! Streams go on in the same steps: a stream that comes from elsewhere reads for itself up to the
//! next of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use placement_model::LedgerEntry;
use placement_model::types::ProviderUuid;
use tokio::time::Instant;

/// So many steps are kept for streams that are behind. Each is a page of the ledger.
const STEPS_MAX: usize = 16;

/// A page of the ledger, and what streams made of it for others.
pub(crate) struct Step {
    /// The last entry of the log that it covers.
    pub(crate) up_to: u64,
    entries: Vec<Arc<LedgerEntry>>,
    /// Those that name a provider.
    of_providers: OnceLock<BTreeMap<ProviderUuid, Vec<Arc<LedgerEntry>>>>,
    /// The lines of all of them, by the form of the stream.
    pub(crate) lines: [OnceLock<Bytes>; 2],
}

impl Step {
    pub(crate) fn new(up_to: u64, entries: Vec<Arc<LedgerEntry>>) -> Self {
        Self {
            up_to,
            entries,
            of_providers: OnceLock::new(),
            lines: Default::default(),
        }
    }

    /// The entries, or those that name a provider.
    pub(crate) fn entries(&self, provider: Option<&ProviderUuid>) -> &[Arc<LedgerEntry>] {
        let Some(provider) = provider else {
            return &self.entries;
        };
        let of_providers = self.of_providers.get_or_init(|| {
            let mut of_providers: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for entry in &self.entries {
                let named: BTreeSet<_> = entry.names.providers.values().collect();
                for named in named {
                    of_providers.entry(*named).or_default().push(entry.clone());
                }
            }
            of_providers
        });
        of_providers.get(provider).map_or(&[], Vec::as_slice)
    }
}

/// Where a stream is.
pub(crate) enum Place {
    /// This step follows.
    Before(Arc<Step>),
    /// A step begins there.
    Elsewhere(u64),
    /// The next step is to be read.
    AtTheEnd,
}

/// The last steps, each of which begins where the one before it ends.
#[derive(Default)]
pub(crate) struct Tail {
    /// Of which history they are.
    epoch: u64,
    /// By the entry after which they begin.
    steps: BTreeMap<u64, Arc<Step>>,
    /// How far streams may go, and when that was seen.
    pub(crate) newest: Option<(Instant, u64)>,
}

impl Tail {
    /// What follows this entry.
    pub(crate) fn after(&mut self, epoch: u64, index: u64) -> Place {
        if self.epoch != epoch {
            *self = Self {
                epoch,
                ..Self::default()
            };
        }
        if let Some(step) = self.steps.get(&index) {
            return Place::Before(Arc::clone(step));
        }
        let starts = self.steps.keys().copied();
        let ends = self.steps.values().map(|step| step.up_to);
        match starts.chain(ends).find(|start| *start > index) {
            Some(start) => Place::Elsewhere(start),
            None => Place::AtTheEnd,
        }
    }

    /// Adds what follows this entry, where [`Place::AtTheEnd`] is.
    pub(crate) fn add(&mut self, index: u64, step: Arc<Step>) {
        let end = self.steps.last_key_value().map(|(_, last)| last.up_to);
        if end.is_some_and(|end| end != index) {
            self.steps.clear();
        }
        self.steps.insert(index, step);
        if self.steps.len() > STEPS_MAX {
            self.steps.pop_first();
        }
    }
}
