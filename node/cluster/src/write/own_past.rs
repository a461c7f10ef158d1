//! Detects that this node's data are an older copy.
//!
//! A data directory restored from an older copy lacks the writes and votes that the node has
//! acknowledged since. Its start count is old as well, but the cluster remembers the start in which
//! the node last wrote. So before its first write the node catches up and checks that its current
//! start is later. Nodes that receive no writes check this soon after the start, and then write a
//! command without effect, so that the cluster remembers this start.

use std::sync::Arc;
use std::time::Duration;

use placement_model::command::RaiseLevel;
use placement_model::{Command, mutant};
use tokio::time::{Instant, sleep};

use crate::running::Running;
use placement_base::backend::Unavailable;
use placement_base::log_messages::log;

/// Interval between attempts while there is no leader.
const EVERY: Duration = Duration::from_secs(1);

impl Running {
    /// Waits until this node knows that no later start of it has written.
    pub(super) async fn wait_until_past_known(&self, deadline: Instant) -> Result<(), Unavailable> {
        let known = self
            .is_latest_start
            .get_or_try_init(|| self.compare_starts(deadline));
        known.await.copied()
    }

    /// The number of this start, or `None` once it is known to be the latest.
    pub(crate) fn unsure_of_start(&self) -> Option<u64> {
        (!self.is_latest_start.initialized()).then_some(self.start)
    }

    async fn record_start(&self) -> Result<(), Unavailable> {
        self.wait_until_past_known(Instant::now() + EVERY).await?;
        let last = self.replica.last_start(self.replica.me);
        if last < Some(self.start) && !self.replica.is_removed() {
            // The cluster has this level already.
            let to = self.replica.level();
            let command = Command::RaiseLevel(RaiseLevel { to });
            let what = format!("start {}", self.start);
            let written = self.commit(command, what).await?;
            let index = written.index.index;
            log!(
                START_RECORDED,
                index,
                start = self.start,
                "recorded this start in the cluster"
            );
        }
        Ok(())
    }

    async fn compare_starts(&self, deadline: Instant) -> Result<(), Unavailable> {
        self.linearize(deadline).await?;
        match self.replica.last_start(self.replica.me) {
            Some(last)
                if last >= self.start && !mutant!("reuse-boots" | "older-copy-takes-part") =>
            {
                self.replica.quarantine_as_older_copy(self.start, last);
                let reason = "this node's data are an older copy";
                Err(Unavailable::nothing_committed(reason))
            }
            _ => Ok(()),
        }
    }
}

/// Checks and records this start as soon as there is a leader, even if no write arrives.
pub(crate) async fn watch(node: Arc<Running>) {
    while node.replica.failure().is_none() && node.record_start().await.is_err() {
        sleep(EVERY).await;
    }
}
