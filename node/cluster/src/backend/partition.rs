//! Reads and writes of one partition, isolated from the others, and writes of the whole cluster. A
//! write is committed, and the caller gets a state of this node that includes its effect.
//!
//! A request belongs to the partition that its name or route selected when the request arrived. A
//! write carries the id of that partition, and the number of changes of the partition's routes so
//! far. If the partition was deleted or its routes changed before the write is applied, apply
//! refuses the write: the request may now belong to another partition, and this node may not have
//! applied the change yet.

use std::sync::Arc;

use futures::future::BoxFuture;
use placement_base::coverage::RarePath;
use placement_model::Command;
use placement_model::cluster::RoutedBy;
use placement_model::types::{Destination, PartitionId, PartitionName};
use tokio::time::Instant;
use tracing::Instrument;

use crate::backlog::Backlog;
use crate::slot::Slot;
use placement_base::backend::{
    AppliedWrite, Consistency, Position, ReadBackend, Unavailable, View, WriteBackend,
};

/// One partition, as the handlers of its API use it.
pub struct PartitionBackend {
    /// `None`: the partition that currently has the name.
    pub id: Option<PartitionId>,
    pub name: PartitionName,
    /// The route by which the requests arrive. `None`: they arrive through the partition's own
    /// listener or from this process.
    pub by: Option<RoutedBy>,
    /// Reads of the whole node, not only of this partition.
    pub read: Arc<dyn ReadBackend>,
    /// Writes of the whole node, not only to this partition.
    pub write: Arc<Writes>,
}

impl PartitionBackend {
    async fn seen(&self, consistency: Consistency) -> Result<View, Unavailable> {
        let view = self.read.view(consistency).await?;
        let view = match self.id {
            Some(id) => (view.in_partition(id))
                .ok_or_else(|| Unavailable::NoPartition(self.name.clone()))?,
            None => view.in_named_partition(&self.name)?,
        };
        match &self.by {
            Some(by) if !view.is_routed(by) => Err(Unavailable::Rerouted),
            _ => Ok(view),
        }
    }

    async fn submitted(
        &self,
        command: Command,
        request_id: String,
    ) -> Result<AppliedWrite, Unavailable> {
        // This view may be older than the state to which the write is applied, so apply checks
        // again.
        let view = match self.seen(Consistency::Local).await {
            // The partition may have been created a moment ago by another node.
            Err(Unavailable::NoPartition(_)) => self.seen(Consistency::Linearizable).await?,
            seen => seen?,
        };
        (self.write)
            .write(view.destination(), command, request_id)
            .await
    }
}

impl ReadBackend for PartitionBackend {
    fn view(&self, consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>> {
        Box::pin(self.seen(consistency))
    }

    fn position(&self) -> Position {
        self.read.position()
    }
}

impl WriteBackend for PartitionBackend {
    fn has_room(&self) -> Result<(), Unavailable> {
        self.write.has_room()
    }

    fn submit(
        &self,
        command: Command,
        request_id: String,
    ) -> BoxFuture<'_, Result<AppliedWrite, Unavailable>> {
        let span = tracing::debug_span!("submit", request_id = %request_id, partition = %self.name);
        Box::pin(self.submitted(command, request_id).instrument(span))
    }
}

/// Writes of one node: commands for the whole cluster, and commands for one partition, which arrive
/// through [`PartitionBackend`].
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
