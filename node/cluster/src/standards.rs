//! The standard resource classes and traits of this binary.
//!
//! A node answers requests, and is ready, only once its own state has all of them. So a client
//! never finds a cluster in which `VCPU` does not exist, nor, during an upgrade, a node whose state
//! lacks a standard name of its version. `upkeep/upgrade.rs` writes them.

use std::sync::atomic::Ordering;

use tokio::time::{Instant, timeout_at};

use super::running::Running;
use placement_base::backend::Unavailable;

/// Why a node whose state lacks standard names is not ready.
pub const LACKING: &str = "this node's state does not have all the standard resource \
                                  classes and traits of its version yet";

impl Running {
    /// Whether this node's state has all names of its binary. Once true, it stays true: no command
    /// removes a standard name, and a state never goes back.
    pub fn has_standards(&self) -> bool {
        if self.has_standards.load(Ordering::Relaxed) {
            return true;
        }
        let applied = self.replica.views.current();
        let found = (self.standards).are_in(applied.cluster.default_partition());
        if found {
            self.has_standards.store(true, Ordering::Relaxed);
        }
        found
    }

    /// Waits until this node's state has all names of its binary.
    pub(crate) async fn wait_for_standards(&self, deadline: Instant) -> Result<(), Unavailable> {
        if self.has_standards() {
            return Ok(());
        }
        let mut applied = self.replica.views.subscribe();
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
            _ => Err(Unavailable::nothing_committed(
                match self.replica.leader() {
                    Some(_) if !self.replica.is_removed() => LACKING.to_owned(),
                    _ => self.replica.without_leader(),
                },
            )),
        }
    }
}
