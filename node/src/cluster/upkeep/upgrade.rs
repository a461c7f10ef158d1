//! What a newer binary brings into the cluster: its standard names, and its feature level.
//!
//! The leader writes the names that a state lacks; any other node does so if the leader does not,
//! since the leader's binary may be older. The leader raises the level, once all members are
//! reachable and run a binary that knows the next one.
//!
//! A member that goes back to an older binary in the moment in which the level is raised is not
//! caught here. It stops and says why ([`placement_raft_store`] does not apply what follows), and
//! is well again once the newer binary is back.

use std::sync::Arc;
use std::time::Duration;

use placement_model::command::RaiseLevel;
use placement_model::{Command, Level};
use tokio::time::{Instant, sleep};

use crate::cluster::running::Running;
use placement_api::backend::Unavailable;

/// How often the leader looks whether the level can be raised.
const EVERY: Duration = Duration::from_secs(1);

/// How long a node that does not lead waits for the leader to write the names.
const GRACE: Duration = Duration::from_secs(1);
/// How long to wait before something that failed is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Raises the level whenever this node leads and can. Ends once it is the newest that this binary
/// knows.
pub(crate) async fn raise_level(node: Arc<Running>) {
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

/// The highest level that all members agree to; `None` while one of them is not reachable.
fn common(node: &Running) -> Option<Level> {
    let Running { replica, peers, .. } = node;
    let members = replica.members();
    let levels = members.keys().map(|id| match *id {
        me if me == replica.me => Some(peers.level()),
        other => peers
            .level_of(other)
            .filter(|_| replica.is_reachable(other)),
    });
    levels.min().flatten()
}

async fn raise(node: &Running, to: Level) {
    let command = Command::RaiseLevel(RaiseLevel { to });
    match node.commit(command, format!("feature level {to}")).await {
        Ok(raised) => {
            let index = raised.index.index;
            tracing::info!(index, level = %to, "the feature level of the cluster is raised");
        }
        Err(error) => tracing::warn!(?error, level = %to, "the feature level is not raised yet"),
    }
}

/// Has the names written until the state has all of them.
pub(crate) async fn write_standards(node: Arc<Running>) {
    let replica = &node.replica;
    let mut changes = replica.leadership_changes();
    while !node.has_standards() {
        if !replica.leads() {
            let leads = async {
                while !replica.leads() {
                    changes.next().await;
                }
            };
            tokio::select! {
                biased;
                present = node.wait_for_standards(Instant::now() + GRACE) => {
                    if present.is_ok() {
                        break;
                    }
                }
                () = leads => {}
            }
        }
        if let Err(error) = write_names(&node).await {
            tracing::debug!(%error, "the standard resource classes and traits are not written yet");
        }
        if !node.has_standards() {
            sleep(PAUSE).await;
        }
    }
}

/// Has the names written that this node's state lacks.
async fn write_names(node: &Running) -> Result<(), Unavailable> {
    // What others have written already may only not be applied here.
    node.catch_up().await?;
    if node.has_standards() {
        return Ok(());
    }
    let command = Command::SyncStandards(node.standards.clone());
    let written = node.commit(command, "standards".to_owned()).await?;
    tracing::info!(
        index = written.index.index,
        "the standard resource classes and traits are written"
    );
    Ok(())
}
