//! The standard resource classes and traits that this binary knows.
//!
//! A node answers requests, and is ready, only once its own state has all of them. So a client
//! never meets a cluster in which `VCPU` does not exist, and never a name that one node of a
//! cluster under upgrade knows and the state does not. Who lacks names has them written: the leader
//! at once, any other node if the leader does not, since its binary may be older.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use placement_model::standard::StandardNames;
use tokio::time::{Instant, sleep, timeout_at};

use super::group::Group;
use super::submit::RETRY_AFTER;
use crate::doors::Unavailable;
use crate::rpc::message::WriteCall;

/// How long a node that does not lead waits for the leader to bring the names.
const GRACE: Duration = Duration::from_secs(1);
/// How long to wait before something that failed is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// What is said of a node whose state lacks names.
pub(crate) const LACKING: &str = "this node's state does not have all the standard resource \
                                  classes and traits of its version yet";

/// The names, and whether this node's state has them.
pub(crate) struct Standards {
    names: StandardNames,
    present: AtomicBool,
}

impl Standards {
    pub(crate) fn new(names: StandardNames) -> Self {
        Self {
            names,
            present: AtomicBool::new(false),
        }
    }
}

impl Group {
    /// Whether this node's state has all names of its binary. Once it has, it always will: no
    /// command removes one, and a state never goes back.
    pub(crate) fn has_standards(&self) -> bool {
        let Standards { names, present } = &self.standards;
        if present.load(Ordering::Relaxed) {
            return true;
        }
        let found = names.are_in(&self.views.current().state);
        if found {
            present.store(true, Ordering::Relaxed);
        }
        found
    }

    /// Waits until this node's state has all names of its binary.
    pub(crate) async fn wait_for_standards(&self, deadline: Instant) -> Result<(), Unavailable> {
        if self.has_standards() {
            return Ok(());
        }
        let mut applied = self.views.subscribe();
        let found = async {
            while !self.has_standards() {
                if applied.changed().await.is_err() {
                    return false;
                }
            }
            true
        };
        match timeout_at(deadline, found).await {
            Ok(true) => Ok(()),
            _ => Err(Unavailable::NothingCommitted {
                reason: match self.leader() {
                    Some(_) if !self.is_removed() => LACKING.to_owned(),
                    _ => self.without_leader(),
                },
                retry_after: RETRY_AFTER,
            }),
        }
    }

    /// Has the names written that this node's state lacks.
    async fn write_standards(&self) -> Result<(), Unavailable> {
        let deadline = Instant::now() + self.config.wait();
        // What others have written already may only not be applied here.
        self.linearize(deadline).await?;
        if self.has_standards() {
            return Ok(());
        }
        let ticket = self.tickets.issue();
        let call = WriteCall {
            request: ticket.request(),
            request_id: "standards".to_owned(),
            command: self.standards.names.sync(),
        };
        let (index, _) = self.commit(call, deadline).await?;
        tracing::info!(
            index,
            "the standard resource classes and traits are written"
        );
        self.apply_up_to(index, deadline).await
    }
}

/// Sees to it that the state gets all names of this binary. Ends once it has them.
pub(crate) async fn bring(group: Arc<Group>) {
    let mut turns = group.turns();
    while !group.has_standards() {
        if !group.leads() {
            let leads = async {
                while !group.leads() {
                    turns.next().await;
                }
            };
            tokio::select! {
                biased;
                present = group.wait_for_standards(Instant::now() + GRACE) => {
                    if present.is_ok() {
                        break;
                    }
                }
                () = leads => {}
            }
        }
        if let Err(error) = group.write_standards().await {
            tracing::debug!(%error, "the standard resource classes and traits are not written yet");
        }
        if !group.has_standards() {
            sleep(PAUSE).await;
        }
    }
}
