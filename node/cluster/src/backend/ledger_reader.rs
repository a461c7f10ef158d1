//! Reads the ledger: the changes that this node has applied, in order.

use std::sync::Arc;

use futures::future::BoxFuture;
use placement_model::LedgerEntry;
use placement_model::types::Timestamp;
use placement_raft_store::LedgerError;

use crate::slot::Slot;
use placement_base::backend::{Floor, LedgerBackend, LedgerUnavailable};

/// The ledger of this node.
pub struct LedgerReader(pub Arc<Slot>);

impl LedgerReader {
    fn read<T>(
        &self,
        read: impl FnOnce(&placement_raft_store::Ledger) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerUnavailable> {
        let running = self
            .0
            .get()
            .ok_or_else(|| LedgerUnavailable::Failed(self.0.outside()))?;
        read(&running.replica.ledger).map_err(|error| match error {
            LedgerError::Gone(floor) => LedgerUnavailable::Gone(floor),
            error => LedgerUnavailable::Failed(error.to_string()),
        })
    }
}

impl LedgerBackend for LedgerReader {
    fn floor(&self) -> Floor {
        let floor = self.0.get().map(|running| running.replica.ledger.floor());
        // Without a cluster nothing is retained.
        floor.unwrap_or(Floor {
            index: u64::MAX,
            at: Timestamp(i64::MAX),
        })
    }

    fn forward(
        &self,
        after: u64,
        up_to: u64,
        at_most_bytes: usize,
    ) -> Result<Vec<Arc<LedgerEntry>>, LedgerUnavailable> {
        self.read(|ledger| ledger.forward(after, up_to, at_most_bytes))
    }

    fn backward(
        &self,
        from: u64,
        at_most_bytes: usize,
    ) -> Result<Vec<Arc<LedgerEntry>>, LedgerUnavailable> {
        self.read(|ledger| ledger.backward(from, at_most_bytes))
    }

    fn applied_after(&self, index: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Without a cluster no state will follow, so the wait ends immediately.
            if let Some(running) = self.0.get() {
                let mut applied = running.replica.views.subscribe();
                let _ = applied.wait_for(|applied| *applied > Some(index)).await;
            }
        })
    }

    fn shutdown_begun(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.leaving.begun())
    }
}
