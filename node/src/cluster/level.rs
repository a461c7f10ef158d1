//! Raising the feature level of the cluster: the leader does it, once all members are heard and run
//! a binary that knows the next one.
//!
//! A member that goes back to an older binary in the moment in which the level is raised is not
//! caught here. It stops and says why ([`placement_raft_store`] does not apply what follows), and is
//! well again once the newer binary is back.

use std::sync::Arc;
use std::time::Duration;

use placement_model::command::RaiseLevel;
use placement_model::{Command, Level};
use tokio::time::{Instant, sleep};

use super::running::Running;
use super::write_path::Committed;

/// How often the leader looks whether the level can be raised.
const EVERY: Duration = Duration::from_secs(1);

/// Raises the level whenever this node leads and can. Ends once it is the newest that this binary
/// knows.
pub(super) async fn run(node: Arc<Running>) {
    while node.replica.level() < Level::NEWEST {
        if node.replica.leads()
            && let Some(to) = common(&node)
            && to > node.replica.level()
        {
            raise(&node, to).await;
        }
        sleep(EVERY).await;
    }
}

/// The highest level that all members agree to; `None` while one of them is not heard.
fn common(node: &Running) -> Option<Level> {
    let Running { replica, peers, .. } = node;
    let members = replica.members();
    let levels = members.keys().map(|id| match *id {
        me if me == replica.me => Some(peers.level()),
        other => peers.level_of(other).filter(|_| replica.is_heard(other)),
    });
    levels.min().flatten()
}

async fn raise(node: &Running, to: Level) {
    let command = Command::RaiseLevel(RaiseLevel { to });
    let deadline = Instant::now() + node.replica.config.wait();
    let request_id = format!("feature level {to}");
    match node.writes.commit(command, request_id, deadline).await {
        Ok(Committed { index, .. }) => {
            tracing::info!(index, level = %to, "the feature level of the cluster is raised");
            // What this node has not applied in time it applies later.
            let _ = node.replica.apply_up_to(index, deadline).await;
        }
        Err(error) => tracing::warn!(?error, level = %to, "the feature level is not raised yet"),
    }
}
