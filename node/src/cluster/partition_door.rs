//! The two doors of one partition: whoever comes through them sees nothing else of the cluster.
//!
//! A partition is known by its name until a state says which one that is. A write carries the id of the
//! partition that this node knows by the name. If that one is deleted before the write's turn comes, the write is
//! refused, also where there is another one of the same name by then.

use std::sync::Arc;

use futures::future::BoxFuture;
use placement_model::types::PartitionName;
use placement_model::{Command, Outcome};
use tracing::Instrument;

use super::write_door::Writes;
use crate::doors::{Consistency, Position, ReadDoor, Unavailable, View, WriteDoor, Written};

/// The doors of one partition of a node.
pub(crate) struct PartitionDoor {
    name: PartitionName,
    read: Arc<dyn ReadDoor>,
    write: Arc<Writes>,
}

impl PartitionDoor {
    /// `read` and `write` are those of the default partition.
    pub(crate) fn new(name: PartitionName, read: Arc<dyn ReadDoor>, write: Arc<Writes>) -> Self {
        Self { name, read, write }
    }

    async fn seen(&self, consistency: Consistency) -> Result<View, Unavailable> {
        let view = self.read.view(consistency).await?;
        view.within(&self.name)
    }

    async fn submitted(
        &self,
        command: Command,
        request_id: String,
    ) -> Result<Written, Unavailable> {
        // As far as this node knows: apply looks whether it is so.
        let view = match self.seen(Consistency::Local).await {
            // This node may be behind whoever made it.
            Err(Unavailable::NoPartition { .. }) => self.seen(Consistency::Linearizable).await?,
            seen => seen?,
        };
        let written = (self.write)
            .write(view.partition(), command, request_id)
            .await?;
        match (written.view.clone().within(&self.name), &written.outcome) {
            (Ok(view), _) => Ok(Written { view, ..written }),
            // A refusal shows nothing of the state.
            (Err(_), Outcome::Refused(_)) => Ok(written),
            (Err(gone), _) => Err(Unavailable::outcome_unknown(gone.to_string())),
        }
    }
}

impl ReadDoor for PartitionDoor {
    fn view(&self, consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>> {
        Box::pin(self.seen(consistency))
    }

    fn position(&self) -> Position {
        self.read.position()
    }
}

impl WriteDoor for PartitionDoor {
    fn has_room(&self) -> Result<(), Unavailable> {
        self.write.has_room()
    }

    fn submit(
        &self,
        command: Command,
        request_id: String,
    ) -> BoxFuture<'_, Result<Written, Unavailable>> {
        let span = tracing::debug_span!("submit", request_id = %request_id, partition = %self.name);
        Box::pin(self.submitted(command, request_id).instrument(span))
    }
}
