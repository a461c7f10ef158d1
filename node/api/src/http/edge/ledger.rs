//! The change log (ledger) of one partition: the changes that this node still retains.

use std::sync::Arc;

use placement_model::ledger::LedgerEntry;
use placement_model::types::PartitionId;

use crate::http::errors::ApiError;
use placement_base::backend::{Floor, LedgerBackend, LedgerUnavailable, PlacementIndex, View};
use placement_base::log_messages::log;

/// Maximum bytes of entries per forward read. Streams share the entries that one of them reads. The
/// JSON of these entries is several times as large.
const STEP_BYTES: usize = 128 * 1024;
const PAGE_BYTES: usize = 32 * 1024;

/// The change log of one partition.
#[derive(Clone)]
pub(crate) struct Ledger {
    /// The ledger of all partitions.
    backend: Arc<dyn LedgerBackend>,
    partition: PartitionId,
    /// Epoch of the history that the changes belong to.
    pub(crate) epoch: u64,
}

impl Ledger {
    /// The ledger of the partition that a view shows.
    pub(crate) fn for_view(view: &View, backend: Arc<dyn LedgerBackend>) -> Self {
        Self {
            backend,
            partition: view.destination().partition,
            epoch: view.position.index.unwrap_or_default().epoch,
        }
    }

    /// Whether a view shows this partition, and not a later partition of the same name.
    pub(crate) fn is_for_view(&self, view: &View) -> bool {
        view.destination().partition == self.partition
    }

    /// The token for an index of this history.
    pub(crate) fn token(&self, index: u64) -> PlacementIndex {
        PlacementIndex {
            epoch: self.epoch,
            index,
        }
    }

    /// The position after which this node retains all entries.
    pub(crate) fn floor(&self) -> Floor {
        self.backend.floor()
    }

    /// A page of the entries after index `after` and up to `up_to`, of all partitions.
    ///
    /// # Errors
    /// [`LedgerUnavailable`].
    pub(crate) fn forward(
        &self,
        after: u64,
        up_to: u64,
    ) -> Result<Vec<Arc<LedgerEntry>>, LedgerUnavailable> {
        self.backend.forward(after, up_to, STEP_BYTES)
    }

    /// A page of the entries up to index `from`, newest first, of all partitions; empty if there is
    /// no such entry after the floor.
    ///
    /// # Errors
    /// [`LedgerUnavailable`].
    pub(crate) fn backward(&self, from: u64) -> Result<Vec<Arc<LedgerEntry>>, LedgerUnavailable> {
        self.backend.backward(from, PAGE_BYTES)
    }

    /// Whether an entry belongs to this partition.
    pub(crate) fn has(&self, entry: &LedgerEntry) -> bool {
        entry.partition == self.partition
    }

    /// Waits until this node has applied an entry after this index.
    pub(crate) async fn applied_after(&self, index: u64) {
        self.backend.applied_after(index).await;
    }

    /// Waits until this node begins to shut down.
    pub(crate) async fn shutdown_begun(&self) {
        self.backend.shutdown_begun().await;
    }

    /// The error for a request for changes that are no longer retained.
    pub(crate) fn gone(&self, code: &'static str, what: &str) -> ApiError {
        let Floor { index, at } = self.floor();
        ApiError::gone(code, what, self.token(index), at)
    }

    /// The error for entries that cannot be read; `gone` is the code if they are no longer
    /// retained.
    pub(crate) fn error(
        &self,
        unavailable: &LedgerUnavailable,
        gone: &'static str,
        what: &str,
    ) -> ApiError {
        match unavailable {
            LedgerUnavailable::Gone(_) => self.gone(gone, what),
            LedgerUnavailable::Failed(reason) => {
                log!(CHANGES_UNREADABLE, reason, "the change log cannot be read");
                ApiError::not_ready("its change log cannot be read from disk")
            }
        }
    }
}
