//! This node's seat in a cluster, which is empty until one is formed with it or it is invited.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::group::Group;
use super::submit::RETRY_AFTER;
use crate::doors::{Standing, Unavailable};

/// The seat.
pub(crate) struct Seat {
    me: u64,
    wait: Duration,
    group: watch::Sender<Option<Arc<Group>>>,
}

impl Seat {
    pub(crate) fn new(me: u64, wait: Duration) -> Self {
        Self {
            me,
            wait,
            group: watch::Sender::new(None),
        }
    }

    /// How long a request waits for what it needs of the cluster.
    pub(crate) fn wait(&self) -> Duration {
        self.wait
    }

    /// This node is a member from now on.
    pub(crate) fn take(&self, group: Arc<Group>) {
        self.group.send_replace(Some(group));
    }

    /// This node stops; what holds its disk open is let go.
    pub(crate) fn leave(&self) -> Option<Arc<Group>> {
        self.group.send_replace(None)
    }

    /// This node's group, if it belongs to one.
    pub(crate) fn now(&self) -> Option<Arc<Group>> {
        self.group.borrow().clone()
    }

    /// This node's group; waits for it.
    pub(crate) async fn group(&self, deadline: Instant) -> Result<Arc<Group>, Unavailable> {
        if let Some(group) = self.now() {
            return Ok(group);
        }
        let mut receiver = self.group.subscribe();
        let seated = timeout_at(deadline, receiver.wait_for(Option::is_some)).await;
        match seated {
            Ok(Ok(group)) => Ok(group.clone().expect("waited until it is there")),
            _ => Err(Unavailable::NothingCommitted {
                reason: "this node does not belong to a cluster yet".to_owned(),
                retry_after: RETRY_AFTER,
            }),
        }
    }

    /// Where this node stands; nowhere, before it belongs to a cluster.
    pub(crate) fn standing(&self) -> Standing {
        match self.now() {
            Some(group) => group.standing(),
            None => Standing {
                index: None,
                node: self.me,
                known_leader: None,
                staleness: None,
            },
        }
    }
}
