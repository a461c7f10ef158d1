//! The standard resource classes and traits that this binary knows.
//!
//! A node answers requests, and is ready, only once its own state has all of them. So a client
//! never meets a cluster in which `VCPU` does not exist, and never a name that one node of a
//! cluster under upgrade knows and the state does not. [`super::upkeep::upgrade`] has them written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use placement_model::Command;
use placement_model::command::SyncStandards;
use tokio::time::{Instant, timeout_at};

use super::replica::Replica;
use placement_api::doors::Unavailable;

/// What is said of a node whose state lacks names.
pub(crate) const LACKING: &str = "this node's state does not have all the standard resource \
                                  classes and traits of its version yet";

/// The names, and whether this node's state has them.
pub(crate) struct Standards {
    replica: Arc<Replica>,
    names: SyncStandards,
    present: AtomicBool,
}

impl Standards {
    pub(super) fn new(replica: Arc<Replica>, names: SyncStandards) -> Self {
        Self {
            replica,
            names,
            present: AtomicBool::new(false),
        }
    }

    /// The command that writes the names.
    pub(super) fn sync(&self) -> Command {
        Command::SyncStandards(self.names.clone())
    }

    /// Whether this node's state has all names of its binary. Once it has, it always will: no
    /// command removes one, and a state never goes back.
    pub(crate) fn are_present(&self) -> bool {
        if self.present.load(Ordering::Relaxed) {
            return true;
        }
        let found = self
            .names
            .are_in(self.replica.views.current().cluster.default_partition());
        if found {
            self.present.store(true, Ordering::Relaxed);
        }
        found
    }

    /// Waits until this node's state has all names of its binary.
    pub(crate) async fn wait(&self, deadline: Instant) -> Result<(), Unavailable> {
        if self.are_present() {
            return Ok(());
        }
        let mut applied = self.replica.views.subscribe();
        let found = async {
            while !self.are_present() {
                if applied.changed().await.is_err() {
                    return false;
                }
            }
            true
        };
        match timeout_at(deadline, found).await {
            Ok(true) => Ok(()),
            _ => Err(Unavailable::nothing_committed(
                match self.replica.leader() {
                    Some(_) if !self.replica.is_removed() => LACKING.to_owned(),
                    _ => self.replica.without_leader(),
                },
            )),
        }
    }
}
