//! The latest changes of one partition, read from the ledger once for all event streams.
//!
//! All streams advance in the same steps. A stream that starts within a step reads the rest of that
//! step itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use placement_model::LedgerEntry;
use placement_model::types::ProviderUuid;
use tokio::time::Instant;

/// Maximum number of steps retained for streams that lag behind. Each is a page of the ledger.
const STEPS_MAX: usize = 16;

/// A page of the ledger, with the results that streams share.
pub(crate) struct Step {
    /// Index of the last log entry that it covers.
    pub(crate) up_to: u64,
    entries: Vec<Arc<LedgerEntry>>,
    /// The entries by the providers that they name, computed on first use.
    by_provider: OnceLock<BTreeMap<ProviderUuid, Vec<Arc<LedgerEntry>>>>,
    /// The encoded lines of all entries, by the format of the stream.
    pub(crate) lines: [OnceLock<Bytes>; 2],
}

impl Step {
    pub(crate) fn new(up_to: u64, entries: Vec<Arc<LedgerEntry>>) -> Self {
        Self {
            up_to,
            entries,
            by_provider: OnceLock::new(),
            lines: Default::default(),
        }
    }

    /// All entries, or only the entries that name this provider.
    pub(crate) fn entries(&self, provider: Option<&ProviderUuid>) -> &[Arc<LedgerEntry>] {
        let Some(provider) = provider else {
            return &self.entries;
        };
        let by_provider = self.by_provider.get_or_init(|| {
            let mut by_provider: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for entry in &self.entries {
                let named: BTreeSet<_> = entry.names.providers.values().collect();
                for named in named {
                    by_provider.entry(*named).or_default().push(entry.clone());
                }
            }
            by_provider
        });
        by_provider.get(provider).map_or(&[], Vec::as_slice)
    }
}

/// The position of a stream relative to the steps.
pub(crate) enum StreamPosition {
    /// The stream continues with this step.
    Before(Arc<Step>),
    /// The next known step boundary is at this index.
    Elsewhere(u64),
    /// The stream has sent all known steps; the next one must be read.
    AtTheEnd,
}

/// The latest steps; each begins where the previous one ends.
#[derive(Default)]
pub(crate) struct Tail {
    /// Epoch of the history of the steps.
    epoch: u64,
    /// Steps by the index after which they begin.
    steps: BTreeMap<u64, Arc<Step>>,
    /// The index up to which streams may send entries, and the time at which it was read.
    pub(crate) newest: Option<(Instant, u64)>,
}

impl Tail {
    /// The position of a stream that has sent all entries up to `index`.
    pub(crate) fn position_after(&mut self, epoch: u64, index: u64) -> StreamPosition {
        if self.epoch != epoch {
            *self = Self {
                epoch,
                ..Self::default()
            };
        }
        if let Some(step) = self.steps.get(&index) {
            return StreamPosition::Before(Arc::clone(step));
        }
        let starts = self.steps.keys().copied();
        let ends = self.steps.values().map(|step| step.up_to);
        match starts.chain(ends).find(|start| *start > index) {
            Some(start) => StreamPosition::Elsewhere(start),
            None => StreamPosition::AtTheEnd,
        }
    }

    /// Adds the step that begins after entry `index`, for which [`StreamPosition::AtTheEnd`] was
    /// returned.
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
