//! The place of the running member, which is empty until a cluster is formed with this node or it
//! is invited to one.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::error::Refused;
use super::running::Running;
use placement_api::backend::{Position, Unavailable};

/// Whether this node is about to go.
#[derive(Debug, Default)]
pub(crate) struct Leaving(watch::Sender<Reasons>);

#[derive(Debug, Default)]
struct Reasons {
    stopping: bool,
    /// An operator has had it drained.
    drained: bool,
    /// It has been ready, so balancers may know it.
    was_ready: bool,
}

impl Leaving {
    /// It stops.
    pub(crate) fn stop(&self) {
        self.0.send_modify(|reasons| reasons.stopping = true);
    }

    /// An operator has had it drained, or taken that back.
    pub(crate) fn drain(&self, drained: bool) {
        self.0.send_modify(|reasons| reasons.drained = drained);
    }

    /// Whether an operator has had it drained.
    pub(crate) fn is_drained(&self) -> bool {
        self.0.borrow().drained
    }

    /// It says that it is ready.
    pub(crate) fn note_ready(&self) {
        (self.0).send_if_modified(|reasons| !std::mem::replace(&mut reasons.was_ready, true));
    }

    /// Whether balancers may still send requests here when it stops.
    pub(crate) fn is_in_balancers(&self) -> bool {
        let reasons = self.0.borrow();
        reasons.was_ready && !reasons.drained
    }

    /// Waits until it is.
    pub(crate) async fn begun(&self) {
        let mut reasons = self.0.subscribe();
        let begun = reasons.wait_for(|reasons| reasons.stopping || reasons.drained);
        // The sender is this one's.
        let _ = begun.await;
    }

    /// The reason, if it is.
    pub(crate) fn why(&self) -> Option<&'static str> {
        let reasons = self.0.borrow();
        if reasons.stopping {
            return Some("this node is stopping");
        }
        let drained =
            "an operator has had this node drained; `placementctl undrain` takes that back";
        reasons.drained.then_some(drained)
    }
}

/// The slot.
pub(crate) struct Slot {
    me: u64,
    pub(crate) leaving: Leaving,
    wait: Duration,
    running: watch::Sender<Option<Arc<Running>>>,
    /// Why this node belongs to no cluster yet, if it knows.
    outside: Mutex<Option<String>>,
}

impl Slot {
    pub(crate) fn new(me: u64, wait: Duration) -> Self {
        Self {
            me,
            leaving: Leaving::default(),
            wait,
            running: watch::Sender::new(None),
            outside: Mutex::default(),
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

    /// Notes why this node belongs to no cluster yet.
    pub(super) fn note_outside(&self, why: &str) {
        *self.outside.lock() = Some(why.to_owned());
    }

    /// That it belongs to no cluster yet, as text.
    pub(crate) fn outside(&self) -> String {
        let words = "this node does not belong to a cluster yet";
        match &*self.outside.lock() {
            None => words.to_owned(),
            Some(why) => format!("{words}: {why}"),
        }
    }

    /// This node stops; what holds its disk open is let go.
    pub(crate) fn take(&self) -> Option<Arc<Running>> {
        self.running.send_replace(None)
    }

    /// The running member, if this node is one.
    pub(crate) fn get(&self) -> Option<Arc<Running>> {
        self.running.borrow().clone()
    }

    /// The running member, for what a node cannot do before it is one.
    pub(crate) fn member(&self) -> Result<Arc<Running>, Refused> {
        self.get().ok_or_else(|| Refused::Conflict(self.outside()))
    }

    /// The running member; waits for it.
    pub(crate) async fn running(&self, deadline: Instant) -> Result<Arc<Running>, Unavailable> {
        if let Some(running) = self.get() {
            return Ok(running);
        }
        let mut receiver = self.running.subscribe();
        match timeout_at(deadline, receiver.wait_for(Option::is_some)).await {
            Ok(Ok(running)) => Ok(running.clone().expect("waited until it is there")),
            _ => Err(Unavailable::nothing_committed(self.outside())),
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
