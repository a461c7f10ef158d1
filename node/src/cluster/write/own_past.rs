//! Whether this node knows all that it did before.
//!
//! A data directory that is put back from an older copy has forgotten what the node has
//! acknowledged and promised since. Its count of starts went back with it, and the cluster
//! remembers the start in which the node last wrote. So before its first write the node catches up
//! and looks: its own start must be a later one. It is looked soon after the start, too, for nodes
//! that no one writes through.

use std::sync::Arc;
use std::time::Duration;

use placement_model::mutant;
use tokio::time::{Instant, sleep};

use crate::cluster::running::Running;
use placement_api::backend::Unavailable;

/// How often it is tried to look, as long as there is no leader.
const EVERY: Duration = Duration::from_secs(1);

impl Running {
    /// Waits until it is known that this node has never been further than now.
    pub(super) async fn past_is_known(&self, deadline: Instant) -> Result<(), Unavailable> {
        let known = self
            .is_latest_start
            .get_or_try_init(|| self.compare_starts(deadline));
        known.await.copied()
    }

    /// Which start this is, as long as it is not known to be the latest.
    pub(crate) fn unsure_of_start(&self) -> Option<u64> {
        (!self.is_latest_start.initialized()).then_some(self.start)
    }

    async fn compare_starts(&self, deadline: Instant) -> Result<(), Unavailable> {
        self.linearize(deadline).await?;
        match self.replica.last_start(self.replica.me) {
            Some(last)
                if last >= self.start && !mutant!("reuse-boots" | "older-copy-takes-part") =>
            {
                self.replica.leave_as_older_copy(self.start, last);
                let reason = "this node's data are an older copy of what it had";
                Err(Unavailable::nothing_committed(reason))
            }
            _ => Ok(()),
        }
    }
}

/// Looks as soon as there is a leader.
pub(crate) async fn watch(node: Arc<Running>) {
    while node.replica.failure().is_none()
        && (node.past_is_known(Instant::now() + EVERY).await).is_err()
    {
        sleep(EVERY).await;
    }
}
