//! What was changed in one partition, as far as this node keeps it.

use std::sync::Arc;

use placement_model::ledger::LedgerEntry;
use placement_model::types::PartitionId;

use crate::backend::{Floor, LedgerBackend, LedgerUnavailable, PlacementIndex, View};
use crate::http::errors::ApiError;

/// So many bytes of entries are read at a time: for streams, which share what one of them reads,
/// and backward. As JSON they are some times as many.
const STEP_BYTES: usize = 128 * 1024;
const PAGE_BYTES: usize = 32 * 1024;

/// The changes of one partition.
#[derive(Clone)]
pub(crate) struct Ledger {
    /// Of all partitions.
    backend: Arc<dyn LedgerBackend>,
    partition: PartitionId,
    /// Which history they are of.
    pub(crate) epoch: u64,
}

impl Ledger {
    /// Of the partition of a view.
    pub(crate) fn of(view: &View, backend: Arc<dyn LedgerBackend>) -> Self {
        Self {
            backend,
            partition: view.destination().partition,
            epoch: view.position.index.unwrap_or_default().epoch,
        }
    }

    /// Whether a view is of this partition, and not of a later one of the same name.
    pub(crate) fn is_of(&self, view: &View) -> bool {
        view.destination().partition == self.partition
    }

    /// A token of its history.
    pub(crate) fn token(&self, index: u64) -> PlacementIndex {
        PlacementIndex {
            epoch: self.epoch,
            index,
        }
    }

    /// Where it begins.
    pub(crate) fn floor(&self) -> Floor {
        self.backend.floor()
    }

    /// The entries that come after this one, and not after another one, a page of them; those of
    /// other partitions are among them.
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

    /// The same up to this one, the newest first; nothing, if no entry is left above the floor.
    ///
    /// # Errors
    /// [`LedgerUnavailable`].
    pub(crate) fn backward(&self, from: u64) -> Result<Vec<Arc<LedgerEntry>>, LedgerUnavailable> {
        self.backend.backward(from, PAGE_BYTES)
    }

    /// Whether an entry is of this partition.
    pub(crate) fn has(&self, entry: &LedgerEntry) -> bool {
        entry.partition == self.partition
    }

    /// Waits until this node has applied more than this.
    pub(crate) async fn applied_after(&self, index: u64) {
        self.backend.applied_after(index).await;
    }

    /// Waits until this node is about to go.
    pub(crate) async fn going(&self) {
        self.backend.going().await;
    }

    /// The answer where what is asked for is not kept any more.
    pub(crate) fn gone(&self, code: &'static str, what: &str) -> ApiError {
        let Floor { index, at } = self.floor();
        ApiError::gone(code, what, self.token(index), at)
    }

    /// The answer where entries cannot be read, with the code of what is not kept any more.
    pub(crate) fn error(
        &self,
        unavailable: &LedgerUnavailable,
        gone: &'static str,
        what: &str,
    ) -> ApiError {
        match unavailable {
            LedgerUnavailable::Gone(_) => self.gone(gone, what),
            LedgerUnavailable::Failed(reason) => {
                tracing::error!(reason, "what was changed cannot be read");
                ApiError::not_ready("what was changed cannot be read from its disk")
            }
        }
    }
}
