//! Holds the running member; empty until a cluster is formed with this node or this node is invited
//! to one.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::error::Refused;
use super::running::Running;
use placement_base::backend::{Position, Unavailable};

/// Whether this node is about to leave service, and why.
#[derive(Debug, Default)]
pub struct Leaving(watch::Sender<Reasons>);

#[derive(Debug, Default)]
struct Reasons {
    stopping: bool,
    /// An operator has drained it.
    drained: bool,
    /// It has been ready, so load balancers may know it.
    was_ready: bool,
}

impl Leaving {
    /// Notes that this node stops.
    pub fn stop(&self) {
        self.0.send_modify(|reasons| reasons.stopping = true);
    }

    /// Notes that an operator has drained this node or ended the drain.
    pub fn drain(&self, drained: bool) {
        self.0.send_modify(|reasons| reasons.drained = drained);
    }

    /// Whether an operator has drained this node.
    pub fn is_drained(&self) -> bool {
        self.0.borrow().drained
    }

    /// Waits while no operator has drained this node.
    pub(crate) async fn drained(&self) {
        // `self` holds the sender, so this does not fail.
        let _ = (self.0.subscribe())
            .wait_for(|reasons| reasons.drained)
            .await;
    }

    /// Notes that this node has reported readiness.
    pub fn note_ready(&self) {
        (self.0).send_if_modified(|reasons| !std::mem::replace(&mut reasons.was_ready, true));
    }

    /// Whether load balancers may still send requests to this node when it stops.
    pub fn receives_balancer_traffic(&self) -> bool {
        let reasons = self.0.borrow();
        reasons.was_ready && !reasons.drained
    }

    /// Waits until this node stops or is drained.
    pub(crate) async fn begun(&self) {
        let mut reasons = self.0.subscribe();
        let begun = reasons.wait_for(|reasons| reasons.stopping || reasons.drained);
        // `self` holds the sender, so this does not fail.
        let _ = begun.await;
    }

    /// The reason, if this node stops or is drained.
    pub fn why(&self) -> Option<&'static str> {
        let reasons = self.0.borrow();
        if reasons.stopping {
            return Some("this node is stopping");
        }
        let drained = "an operator has drained this node; `placementctl undrain` reverts it";
        reasons.drained.then_some(drained)
    }
}

/// State of a node before it forms or joins a cluster.
pub(super) const OUTSIDE: &str = "this node does not belong to a cluster yet";

/// Holds the running member, if there is one.
pub struct Slot {
    me: u64,
    pub leaving: Leaving,
    wait: Duration,
    running: watch::Sender<Option<Arc<Running>>>,
    /// Why this node belongs to no cluster, once its data directory was found empty.
    outside: Mutex<Option<String>>,
}

impl Slot {
    pub fn new(me: u64, wait: Duration) -> Self {
        Self {
            me,
            leaving: Leaving::default(),
            wait,
            running: watch::Sender::new(None),
            outside: Mutex::default(),
        }
    }

    /// How long a request waits for the cluster.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// Makes this node a member from now on.
    pub(super) fn set(&self, running: Arc<Running>) {
        self.running.send_replace(Some(running));
    }

    /// Notes why this node, whose data directory is empty, belongs to no cluster.
    pub(super) fn note_outside(&self, why: &str) {
        *self.outside.lock() = Some(why.to_owned());
    }

    /// Replaces the noted reason, if there is one. Returns whether the new one differs from it.
    pub(super) fn renote_outside(&self, why: &str) -> bool {
        let mut outside = self.outside.lock();
        let is_new = outside.as_deref().is_some_and(|noted| noted != why);
        if is_new {
            *outside = Some(why.to_owned());
        }
        is_new
    }

    /// Why this node belongs to no cluster.
    pub fn outside(&self) -> String {
        let why = self.outside.lock().clone();
        why.unwrap_or_else(|| OUTSIDE.to_owned())
    }

    /// Empties the slot when this node stops, so that the store is closed.
    pub fn take(&self) -> Option<Arc<Running>> {
        self.running.send_replace(None)
    }

    /// The running member, if this node is one.
    pub fn get(&self) -> Option<Arc<Running>> {
        self.running.borrow().clone()
    }

    /// The running member.
    ///
    /// # Errors
    /// This node belongs to no cluster yet.
    pub fn member(&self) -> Result<Arc<Running>, Refused> {
        self.get().ok_or_else(|| Refused::Conflict(self.outside()))
    }

    /// The running member; waits for it until `deadline`.
    pub(crate) async fn running(&self, deadline: Instant) -> Result<Arc<Running>, Unavailable> {
        if let Some(running) = self.get() {
            return Ok(running);
        }
        let mut receiver = self.running.subscribe();
        match timeout_at(deadline, receiver.wait_for(Option::is_some)).await {
            Ok(Ok(running)) => Ok(running.clone().expect("the wait ends when it is set")),
            _ => Err(Unavailable::nothing_committed(self.outside())),
        }
    }

    /// The position of this node; without an index before it belongs to a cluster.
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
