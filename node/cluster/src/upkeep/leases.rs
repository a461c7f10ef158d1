//! Ends holds whose leases are over.
//!
//! The leader only proposes this; apply decides which leases are over, by the timestamp of the
//! command. So a leader that was away cannot end a lease that was renewed in the meantime, and
//! several leaders that propose the same do no harm.

use std::sync::Arc;
use std::time::Duration;

use placement_model::Command;
use placement_model::command::ExpireHolds;
use placement_model::mutant;
use placement_model::types::{Destination, Timestamp};
use tokio::time::{Instant, sleep};

use crate::running::Running;
use placement_base::backend::Unavailable;

/// How often the leader looks for leases that are over.
const EVERY: Duration = Duration::from_secs(1);

/// Ends leases whenever this node leads.
pub(crate) async fn watch(node: Arc<Running>) {
    while node.replica.failure().is_none() {
        sleep(EVERY).await;
        while node.replica.leads()
            && !mutant!("leases-stay")
            && let Some(destination) = over(&node)
        {
            if let Err(error) = end(&node, destination).await {
                tracing::debug!(%error, "could not end leases yet");
                break;
            }
        }
    }
}

/// A partition with a lease that is over at the stamp of the next command.
fn over(node: &Running) -> Option<Destination> {
    let applied = node.replica.views.current();
    let now = applied.last_stamp.max(Some(node.wall_time()))?;
    let mut states = applied.cluster.states();
    let is_over = |end: Timestamp| end <= now;
    let (partition, _) = states.find(|(_, state)| state.next_lease_end().is_some_and(is_over))?;
    Some(Destination {
        partition,
        routes: applied.cluster.routing(partition).changes,
    })
}

async fn end(node: &Running, destination: Destination) -> Result<(), Unavailable> {
    let deadline = Instant::now() + node.replica.config.wait();
    let command = Command::ExpireHolds(ExpireHolds {});
    let ended = node.commit_in(destination, command, "leases".to_owned(), deadline);
    ended.await.map(drop)
}
