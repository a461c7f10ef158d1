//! Reads: what each consistency level promises, and how this node keeps the promise.
//!
//! * linearizable: obtains the read index (`read/index.rs`), then waits until this node has applied
//!   the log up to it.
//! * session: waits until this node has applied the log up to the index in the client's token.
//! * bounded: answers immediately if the state was complete recently enough. Otherwise reads as
//!   linearizable.
//! * local: answers with the current state of this node.
//! * bounded or local: reads as bounded, or as local while this node cannot reach the leader. The
//!   first read that finds the leader unreachable waits a little longer than an election takes.
//!
//! No read is answered before the state contains all standard names of this binary
//! ([`crate::standards`]).

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::replica::Replica;
use crate::slot::Slot;
use placement_base::backend::{
    Consistency, PlacementIndex, Position, ReadBackend, Unavailable, View,
};

/// Reads of one node.
pub struct Reads(pub Arc<Slot>);

impl Reads {
    async fn promise(&self, consistency: Consistency) -> Result<View, Unavailable> {
        let deadline = Instant::now() + self.0.wait();
        let node = self.0.running(deadline).await?;
        let replica = &node.replica;
        node.wait_for_standards(deadline).await?;
        match consistency {
            Consistency::Local => {}
            Consistency::Linearizable => node.linearize(deadline).await?,
            Consistency::Session(token) => reach(replica, token, deadline).await?,
            // A linearizable state contains everything acknowledged before this read, so it
            // satisfies any bound.
            Consistency::Bounded(bound) if replica.freshness.is_older_than(bound) => {
                node.linearize(deadline).await?;
            }
            Consistency::BoundedOrLocal(bound)
                if replica.freshness.is_older_than(bound) && !replica.freshness.is_cut_off() =>
            {
                let patience = replica.config.raft.waits().optional_read();
                let deadline = deadline.min(Instant::now() + patience);
                if node.linearize(deadline).await.is_err() {
                    replica.freshness.cut_off();
                }
            }
            Consistency::Bounded(_) | Consistency::BoundedOrLocal(_) => {}
        }
        Ok(replica.view())
    }
}

impl ReadBackend for Reads {
    fn view(&self, consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>> {
        let span = match consistency {
            Consistency::Local => Span::none(),
            _ => tracing::debug_span!("read point"),
        };
        Box::pin(self.promise(consistency).instrument(span))
    }

    fn position(&self) -> Position {
        self.0.position()
    }
}

/// Waits until this node has applied the log up to the index in a client's token.
async fn reach(
    replica: &Replica,
    token: PlacementIndex,
    deadline: Instant,
) -> Result<(), Unavailable> {
    if token.epoch != replica.identity.epoch {
        return Err(Unavailable::ForeignIndex(replica.identity.epoch));
    }
    replica.apply_up_to(token.index, deadline).await
}
