//! The place of the running member, which is empty until a cluster is formed with this node or it is
//! invited to one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::running::Running;
use crate::doors::{Position, Unavailable};

/// The slot.
pub(crate) struct Slot {
    me: u64,
    wait: Duration,
    running: watch::Sender<Option<Arc<Running>>>,
}

impl Slot {
    pub(crate) fn new(me: u64, wait: Duration) -> Self {
        Self {
            me,
            wait,
            running: watch::Sender::new(None),
        }
    }

    /// How long a request waits for what it needs of the cluster.
    pub(crate) fn wait(&self) -> Duration {
        self.wait
    }

    /// This node is a member from now on.
    pub(super) fn set(&self, running: Arc<Running>) {
        self.running.send_replace(Some(running));
    }

    /// This node stops; what holds its disk open is let go.
    pub(crate) fn take(&self) -> Option<Arc<Running>> {
        self.running.send_replace(None)
    }

    /// The running member, if this node is one.
    pub(crate) fn get(&self) -> Option<Arc<Running>> {
        self.running.borrow().clone()
    }

    /// The running member; waits for it.
    pub(crate) async fn running(&self, deadline: Instant) -> Result<Arc<Running>, Unavailable> {
        if let Some(running) = self.get() {
            return Ok(running);
        }
        let mut receiver = self.running.subscribe();
        match timeout_at(deadline, receiver.wait_for(Option::is_some)).await {
            Ok(Ok(running)) => Ok(running.clone().expect("waited until it is there")),
            _ => Err(Unavailable::nothing_committed(
                "this node does not belong to a cluster yet",
            )),
        }
    }

    /// Where this node stands; nowhere, before it belongs to a cluster.
    pub(crate) fn position(&self) -> Position {
        match self.get() {
            Some(running) => running.replica.position(),
            None => Position {
                index: None,
                node: self.me,
                known_leader: None,
                staleness: None,
            },
        }
    }
}
