//! Compacts the log at an operator's request.

use std::time::Duration;

use placement_raft_store::TypeConfig;
use tokio::time::{Instant, sleep};

use super::error::Refused;
use super::replica::Replica;

/// How long the snapshot may take.
const DEADLINE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

impl Replica {
    /// Writes this node's state down and drops the log entries that it covers. Returns once it is
    /// done.
    pub(crate) async fn compact(&self) -> Result<(), Refused> {
        let stopped =
            |error: openraft::errors::Fatal<TypeConfig>| Refused::Unavailable(error.to_string());
        let applied = self.views.applied_index();
        self.raft.trigger().snapshot().await.map_err(stopped)?;
        let give_up = Instant::now() + DEADLINE;
        while self.raft_metrics(|metrics| metrics.snapshot.map(|id| id.index())) < applied {
            if Instant::now() >= give_up {
                return Err(Refused::Unavailable(
                    "the snapshot is still being made".to_owned(),
                ));
            }
            sleep(PAUSE).await;
        }
        if let Some(applied) = applied {
            self.raft
                .trigger()
                .purge_log(applied)
                .await
                .map_err(stopped)?;
        }
        Ok(())
    }
}
