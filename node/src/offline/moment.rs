//! An immutable state behind the traits of the REST API.

use std::future::{pending, ready};
use std::sync::Arc;

use futures::future::BoxFuture;
use placement_model::Command;
use placement_model::ledger::LedgerEntry;
use placement_model::types::Timestamp;

use placement_base::backend::{
    AppliedWrite, Consistency, Floor, LedgerBackend, LedgerUnavailable, PlacementIndex, Position,
    ReadBackend, Readiness, Unavailable, View, WriteBackend,
};

/// A partition at a past moment.
pub(super) struct PastPartition {
    pub(super) view: View,
    /// Stamp of its last command.
    pub(super) at: Timestamp,
}

impl PastPartition {
    fn index(&self) -> PlacementIndex {
        self.view.position.index.unwrap_or_default()
    }

    fn unchangeable(&self) -> Unavailable {
        Unavailable::Past(self.index().index)
    }
}

impl ReadBackend for PastPartition {
    fn view(&self, consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>> {
        let here = self.index();
        let read = match consistency {
            // A later token does not belong to this history, and waiting would not help.
            Consistency::Session(token) if token.epoch != here.epoch || token > here => {
                Err(Unavailable::ForeignIndex(here.epoch))
            }
            _ => Ok(self.view.clone()),
        };
        Box::pin(ready(read))
    }

    fn position(&self) -> Position {
        self.view.position
    }
}

impl WriteBackend for PastPartition {
    fn has_room(&self) -> Result<(), Unavailable> {
        Err(self.unchangeable())
    }

    fn submit(
        &self,
        _command: Command,
        _request_id: String,
    ) -> BoxFuture<'_, Result<AppliedWrite, Unavailable>> {
        Box::pin(ready(Err(self.unchangeable())))
    }
}

/// A backup does not contain earlier changes.
impl LedgerBackend for PastPartition {
    fn floor(&self) -> Floor {
        Floor {
            index: self.index().index,
            at: self.at,
        }
    }

    fn forward(
        &self,
        _after: u64,
        _up_to: u64,
        _at_most_bytes: usize,
    ) -> Result<Vec<Arc<LedgerEntry>>, LedgerUnavailable> {
        // The ledger has no entries after its floor.
        Ok(Vec::new())
    }

    fn backward(
        &self,
        _from: u64,
        _at_most_bytes: usize,
    ) -> Result<Vec<Arc<LedgerEntry>>, LedgerUnavailable> {
        Err(LedgerUnavailable::Gone(self.floor()))
    }

    fn applied_after(&self, _index: u64) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }

    fn shutdown_begun(&self) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }
}

impl Readiness for PastPartition {
    fn why_not(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(ready(None))
    }
}
