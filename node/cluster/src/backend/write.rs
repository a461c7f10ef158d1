//! Writes: a command is committed, and the caller gets a state of this node that includes its
//! effect.

use std::sync::Arc;

use futures::future::BoxFuture;
use placement_base::coverage::RarePath;
use placement_model::Command;
use placement_model::types::Destination;
use tokio::time::Instant;
use tracing::Instrument;

use crate::backlog::Backlog;
use crate::slot::Slot;
use placement_base::backend::{AppliedWrite, Unavailable, WriteBackend};

/// Writes of one node: commands for the whole cluster, and commands for one partition, which arrive
/// through [`PartitionBackend`](super::partition::PartitionBackend).
pub struct Writes {
    slot: Arc<Slot>,
    backlog: Backlog,
}

impl Writes {
    /// `backlog` limits the number of writes that wait here.
    pub fn new(slot: Arc<Slot>, backlog: Backlog) -> Self {
        Self { slot, backlog }
    }

    /// Commits a command in one partition.
    pub(crate) async fn write(
        &self,
        destination: Destination,
        command: Command,
        request_id: String,
    ) -> Result<AppliedWrite, Unavailable> {
        // The size of the encoded command is not known yet. The backlog of the leader counts it.
        let permit = self.backlog.permit(0).map_err(busy)?;
        let deadline = Instant::now() + self.slot.wait();
        let node = self.slot.running(deadline).await?;
        // Once this node has applied the standard names, they precede this write in the log.
        node.wait_for_standards(deadline).await?;
        let written = node
            .commit_in(destination, command, request_id, deadline)
            .await?;
        permit.answered();
        Ok(written)
    }
}

fn busy(reason: String) -> Unavailable {
    RarePath::WriteBusy.ran();
    Unavailable::Busy(reason)
}

impl WriteBackend for Writes {
    fn has_room(&self) -> Result<(), Unavailable> {
        self.backlog.permit(0).map(drop).map_err(busy)
    }

    fn submit(
        &self,
        command: Command,
        request_id: String,
    ) -> BoxFuture<'_, Result<AppliedWrite, Unavailable>> {
        let span = tracing::debug_span!("submit", request_id = %request_id);
        let written = self.write(Destination::DEFAULT, command, request_id);
        Box::pin(written.instrument(span))
    }
}
